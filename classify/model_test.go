package classify

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tree is an error as a plain description, which the model below can read.
type tree struct {
	kind     string
	verdict  Verdict
	class    string
	after    time.Duration
	children []*tree
}

func drawTree(depth int) *rapid.Generator[*tree] {
	return rapid.Custom(func(t *rapid.T) *tree {
		kinds := []string{"bare", "named", "http", "decode"}
		if depth > 0 {
			kinds = append(kinds, "mark", "mark", "after", "as", "as", "wrap", "join")
		}
		n := &tree{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		children := 1
		switch n.kind {
		case "bare", "named", "http", "decode":
			children = 0
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

func (n *tree) build() error {
	switch n.kind {
	case "named":
		return &skuError{1}
	case "http":
		return httpError{code: 503}
	case "decode":
		return &time.ParseError{}
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

// first returns the first node, depth first, that ok accepts.
func (n *tree) first(ok func(*tree) bool) *tree {
	if ok(n) {
		return n
	}
	for _, c := range n.children {
		if found := c.first(ok); found != nil {
			return found
		}
	}
	return nil
}

// TestResolutionFollowsTheModel checks the one walk that the classifier makes
// against one naive search per question.
func TestResolutionFollowsTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := drawTree(5).Draw(t, "error")
		leaf := func(kind string) func(*tree) bool { return func(n *tree) bool { return n.kind == kind } }
		builtin := n.first(func(n *tree) bool { return n.kind == "http" || n.kind == "decode" })

		want := Result{Default: true, Class: ClassUnclassified}
		if w := n.first(func(n *tree) bool { return n.kind == "mark" || n.kind == "after" }); w != nil {
			want.Verdict, want.Default = w.verdict, false
		} else if builtin != nil {
			want.Default = false
			if builtin.kind == "http" {
				want.Verdict = VerdictRetry
			}
		}
		if w := n.first(func(n *tree) bool { return n.kind == "as" && n.class != "" }); w != nil {
			want.Class = w.class
		} else if builtin != nil {
			want.Class = map[string]string{"http": "http.503", "decode": "decode"}[builtin.kind]
		} else if n.first(leaf("named")) != nil {
			want.Class = "classify.skuError"
		}
		if w := n.first(func(n *tree) bool { return n.after > 0 }); w != nil && want.Verdict == VerdictRetry {
			want.RetryAfter = w.after
		}

		err := n.build()
		got := new(Classifier).Classify(err)
		want.Message, want.Fingerprint = err.Error(), fingerprint(want.Class, err.Error(), "")
		if got != want {
			t.Fatalf("Classify = %+v\nwant %+v", got, want)
		}
	})
}
