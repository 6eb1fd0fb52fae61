package classify

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tree describes an error in a form that the model below can read.
type tree struct {
	kind     string
	verdict  Verdict
	class    string
	after    time.Duration
	children []*tree
}

func drawTree(depth int) *rapid.Generator[*tree] {
	return rapid.Custom(func(t *rapid.T) *tree {
		leaves := []string{"bare", "named", "http", "http500", "eof", "decode"}
		kinds := leaves
		if depth > 0 {
			kinds = append(slices.Clip(kinds), "mark", "mark", "after", "as", "as", "wrap", "join", "undecodable", "undecodable", "unsupported")
		}
		n := &tree{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		children := 1
		if slices.Contains(leaves, n.kind) {
			children = 0
		}
		switch n.kind {
		case "mark":
			n.verdict = Verdict(rapid.IntRange(0, 2).Draw(t, "verdict"))
		case "after":
			n.verdict = VerdictRetry
			n.after = time.Duration(rapid.IntRange(0, 3).Draw(t, "after")) * time.Second
		case "as":
			n.class = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "class")
		case "join":
			children = rapid.IntRange(1, 3).Draw(t, "children")
		}
		for range children {
			n.children = append(n.children, drawTree(depth-1).Draw(t, "child"))
		}
		return n
	})
}

// typeNames are the type names of the leaves that have one.
var typeNames = map[string]string{
	"named": "classify.skuError", "http": "classify.httpError", "http500": "classify.httpError", "decode": "time.ParseError",
}

func (n *tree) build() error {
	switch n.kind {
	case "named":
		return &skuError{1}
	case "http":
		return httpError{code: 503}
	case "http500":
		return httpError{code: 500}
	case "eof":
		return io.EOF
	case "decode":
		return &time.ParseError{}
	case "undecodable":
		return Undecodable(n.children[0].build())
	case "unsupported":
		return UnsupportedVersion(n.children[0].build())
	case "mark":
		return []func(error) error{Terminal, Retryable, Discard}[n.verdict](n.children[0].build())
	case "after":
		return RetryAfter(n.children[0].build(), n.after)
	case "as":
		return As(n.children[0].build(), n.class)
	case "wrap":
		return fmt.Errorf("x: %w", n.children[0].build())
	case "join":
		var errs []error
		for _, c := range n.children {
			errs = append(errs, c.build())
		}
		return errors.Join(errs...)
	}
	return errBare
}

// seen is a node of the description, as a reader meets it.
type seen struct {
	*tree
	inDecoder bool
}

// all lists the nodes, depth first.
func (n *tree) all(inDecoder bool) []seen {
	nodes := []seen{{n, inDecoder}}
	for _, c := range n.children {
		nodes = append(nodes, c.all(inDecoder || n.kind == "undecodable")...)
	}
	return nodes
}

// marked is the handler's mark on a node; builtin is the opinion on the node by itself.
func (n seen) marked() opinion {
	switch n.kind {
	case "mark", "after":
		return opinion{verdict: n.verdict, decided: true}
	case "as":
		return opinion{class: n.class}
	case "unsupported":
		return withVerdict("unsupported-version", VerdictTerminal)
	}
	return opinion{}
}

func (n seen) builtin() opinion {
	switch {
	case n.kind == "http":
		return withVerdict("http.503", VerdictRetry)
	case n.inDecoder:
		return opinion{} // no other opinion is plainly an outage
	case n.kind == "http500":
		return opinion{class: "http.500"}
	case n.kind == "eof":
		return withVerdict("net.eof", VerdictRetry)
	case n.kind == "decode":
		return withVerdict("decode", VerdictTerminal)
	}
	return opinion{}
}

// TestClassifier_FollowsTheModel compares the classifier's single walk with one naive search per
// question.
func TestClassifier_FollowsTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawTree(5).Draw(t, "error")
		nodes := n.all(false)
		has := func(kind string) bool {
			return slices.ContainsFunc(nodes, func(n seen) bool { return n.kind == kind })
		}
		var opinions []opinion
		for _, n := range nodes {
			opinions = append(opinions, n.marked())
		}
		for _, n := range nodes {
			opinions = append(opinions, n.builtin())
		}
		var want Result
		verdict := slices.IndexFunc(opinions, func(o opinion) bool { return o.decided })
		if verdict >= 0 {
			want.Verdict = opinions[verdict].verdict
		}
		class := slices.IndexFunc(opinions, func(o opinion) bool { return o.class != "" })
		switch {
		case class >= 0:
			want.Class = opinions[class].class
		case has("undecodable") && want.Verdict == VerdictTerminal:
			want.Class = ClassDecode
		default:
			want.Class = ClassUnclassified
			for _, n := range slices.Backward(nodes) { // the last value set remains: the first
				if name := typeNames[n.kind]; name != "" {
					want.Class = name
				}
			}
		}
		want.Default = verdict < 0 && !has("undecodable")
		switch {
		case has("unsupported"):
			want.Kind = KindUnsupportedVersion
		case has("undecodable"), want.Class == ClassDecode:
			want.Kind = KindDecode
		}
		if i := slices.IndexFunc(nodes, func(n seen) bool { return n.after > 0 }); i >= 0 && want.Verdict == VerdictRetry {
			want.RetryAfter = nodes[i].after
		}

		err := n.build()
		got := new(Classifier).Classify(err)
		want.Message, want.Fingerprint = err.Error(), fingerprint(want.Class, err.Error(), "")
		if got != want {
			t.Fatalf("Classify = %+v\nwant %+v", got, want)
		}
	})
}
