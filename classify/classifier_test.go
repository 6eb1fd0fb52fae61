package classify

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestClassifier_ResolvesVerdictAndClass(t *testing.T) {
	t.Parallel()
	_, atoi := strconv.Atoi("x")
	_, b64 := base64.StdEncoding.DecodeString("!")
	_, hx := hex.DecodeString("zz")
	_, urlParse := url.Parse("http://[::1")
	syntax := json.Unmarshal([]byte("{"), new(int))
	mistype := json.Unmarshal([]byte(`"a"`), new(int))
	_, noFile := os.Open("/does/not/exist")
	refused := &url.Error{Op: "Get", URL: "http://x", Err: &net.OpError{
		Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}}
	wrap := func(err error) error { return fmt.Errorf("order 7: %w", err) }

	for _, tt := range []struct {
		name    string
		err     error
		verdict Verdict
		class   string
		unknown bool
	}{
		{"bare", errBare, VerdictTerminal, "unclassified", true},
		{"wrapped bare", wrap(errBare), VerdictTerminal, "unclassified", true},
		{"named", wrap(&skuError{1}), VerdictTerminal, "classify.skuError", true},
		{"retryable named", wrap(Retryable(wrap(&skuError{1}))), VerdictRetry, "classify.skuError", false},
		{"outermost verdict", Terminal(Retryable(errBare)), VerdictTerminal, "unclassified", false},
		{"outermost class", As(wrap(As(errBare, "inner")), "outer"), VerdictTerminal, "outer", true},
		{"class and built-in verdict", As(io.ErrUnexpectedEOF, "feed.cut"), VerdictRetry, "feed.cut", false},
		{"verdict and built-in class", Terminal(httpError{code: 503}), VerdictTerminal, "http.503", false},
		{"discard", As(Discard(errBare), "old"), VerdictDiscard, "old", false},
		{"empty class", As(&skuError{1}, ""), VerdictTerminal, "classify.skuError", true},
		{"dirty class", As(errBare, "tax table: miss!"), VerdictTerminal, "tax_table__miss_", true},
		{"joined depth first", errors.Join(wrap(wrap(Retryable(errBare))), Terminal(errBare)), VerdictRetry, "unclassified", false},
		{"joined names", errors.Join(errBare, &skuError{1}, httpError{code: 0}), VerdictTerminal, "classify.skuError", true},
		{"wrapped many", fmt.Errorf("%w and %w", errBare, Discard(errBare)), VerdictDiscard, "unclassified", false},

		{"deadline", wrap(context.DeadlineExceeded), VerdictRetry, "timeout", false},
		{"deadline in a client's", &url.Error{Op: "Get", Err: context.DeadlineExceeded}, VerdictRetry, "timeout", false},
		{"canceled", &url.Error{Op: "Get", Err: context.Canceled}, VerdictRetry, "canceled", false},
		{"refused", wrap(refused), VerdictRetry, "net.refused", false},
		{"reset", syscall.ECONNRESET, VerdictRetry, "net.reset", false},
		{"pipe", &os.PathError{Op: "write", Err: syscall.EPIPE}, VerdictRetry, "net.pipe", false},
		{"eof", wrap(io.ErrUnexpectedEOF), VerdictRetry, "net.eof", false},
		{"eof of a client", &url.Error{Op: "Get", Err: io.EOF}, VerdictRetry, "net.eof", false},
		{"bare eof", wrap(io.EOF), VerdictRetry, "net.eof", false},
		{"again", os.NewSyscallError("accept", syscall.EAGAIN), VerdictRetry, "os.unavailable", false},
		{"too many files", &os.PathError{Op: "open", Err: syscall.EMFILE}, VerdictRetry, "os.unavailable", false},
		{"net timeout", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, VerdictRetry, "net.timeout", false},
		{"dns", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, VerdictRetry, "net.dns", false},
		{"closed", net.ErrClosed, VerdictRetry, "net.error", false},
		{"missing file is no network", noFile, VerdictTerminal, "syscall.Errno", true},
		{"broken URL is no network", urlParse, VerdictTerminal, "url.Error", true},

		{"http 500", wrap(httpError{code: 500}), VerdictTerminal, "http.500", true},
		{"http 501", httpError{code: 501}, VerdictTerminal, "http.501", false},
		{"http 502", httpError{code: 502}, VerdictRetry, "http.502", false},
		{"http 504", httpError{code: 504}, VerdictRetry, "http.504", false},
		{"http 505", httpError{code: 505}, VerdictTerminal, "http.505", false},
		{"http 529", httpError{code: 529}, VerdictRetry, "http.529", false},
		{"http 404", httpError{code: 404}, VerdictTerminal, "http.404", false},
		{"http 408", httpError{code: 408}, VerdictRetry, "http.408", false},
		{"http 425", httpError{code: 425}, VerdictRetry, "http.425", false},
		{"http 429", httpError{code: 429}, VerdictRetry, "http.429", false},
		{"http 200", httpError{code: 200}, VerdictTerminal, "classify.httpError", true},
		{"http 302", httpError{code: 302}, VerdictTerminal, "classify.httpError", true},
		{"http of smithy", &smithyError{503}, VerdictRetry, "http.503", false},
		{"http of gax", &gaxError{403}, VerdictTerminal, "http.403", false},
		{"http of gax, none", &gaxError{-1}, VerdictTerminal, "classify.gaxError", true},

		{"sql serialization", wrap(&pgError{"40001"}), VerdictRetry, "sql.40001", false},
		{"sql connection", &pgError{"08006"}, VerdictRetry, "sql.08006", false},
		{"sql resources", &pgError{"53300"}, VerdictRetry, "sql.53300", false},
		{"sql shutdown", &pgError{"57P01"}, VerdictRetry, "sql.57P01", false},
		{"sql query cancelled", &pgError{"57014"}, VerdictRetry, "sql.57014", false},
		{"sql operator", &pgError{"57000"}, VerdictTerminal, "sql.57000", true},
		{"sql read only", &pgError{"25006"}, VerdictRetry, "sql.25006", false},
		{"sql transaction state", &pgError{"25P02"}, VerdictTerminal, "sql.25P02", true},
		{"sql lock", &pgError{"55P03"}, VerdictRetry, "sql.55P03", false},
		{"sql I/O", &pgError{"58030"}, VerdictRetry, "sql.58030", false},
		{"database/sql's bad connection", wrap(driver.ErrBadConn), VerdictRetry, "sql.connection", false},
		{"database/sql's closed connection", wrap(sql.ErrConnDone), VerdictRetry, "sql.connection", false},
		{"no rows", sql.ErrNoRows, VerdictTerminal, "unclassified", true},
		{"sql data", &pgError{"22001"}, VerdictTerminal, "sql.22001", false},
		{"sql unique", &pgError{"23505"}, VerdictTerminal, "sql.23505", false},
		{"sql undefined", &pgError{"42P01"}, VerdictTerminal, "sql.42P01", false},
		{"sql internal", &pgError{"XX000"}, VerdictTerminal, "sql.XX000", true},
		{"sql none", &pgError{""}, VerdictTerminal, "classify.pgError", true},

		{"grpc unavailable", wrap(&grpcError{&grpcStatus{14}}), VerdictRetry, "grpc.Unavailable", false},
		{"grpc argument", &grpcError{&grpcStatus{3}}, VerdictTerminal, "grpc.InvalidArgument", false},
		{"grpc unknown", &grpcError{&grpcStatus{2}}, VerdictTerminal, "grpc.Unknown", true},
		{"grpc new code", &grpcError{&grpcStatus{77}}, VerdictTerminal, "grpc.Code_77", true},
		{"grpc ok", &grpcError{&grpcStatus{0}}, VerdictTerminal, "classify.grpcError", true},
		{"grpc nil", &grpcError{}, VerdictTerminal, "classify.grpcError", true},

		{"json syntax", wrap(syntax), VerdictTerminal, "decode", false},
		{"json type", mistype, VerdictTerminal, "decode", false},
		{"number", atoi, VerdictTerminal, "decode", false},
		{"base64", b64, VerdictTerminal, "decode", false},
		{"hex", hx, VerdictTerminal, "decode", false},
		{"retryable decode", Retryable(syntax), VerdictRetry, "decode", false},

		{"undecodable", wrap(Undecodable(wrap(errBare))), VerdictTerminal, "decode", false},
		{"undecodable syntax", Undecodable(syntax), VerdictTerminal, "decode", false},
		{"undecodable and cut short", Undecodable(wrap(io.ErrUnexpectedEOF)), VerdictTerminal, "decode", false},
		{"undecodable and empty", Undecodable(io.EOF), VerdictTerminal, "decode", false},
		{"undecodable by a lost connection", Undecodable(&url.Error{Op: "Get", Err: io.EOF}), VerdictRetry, "net.error", false},
		{"undecodable by a refused connection", Undecodable(refused), VerdictRetry, "net.refused", false},
		{"undecodable by a 503", Undecodable(wrap(httpError{code: 503})), VerdictRetry, "http.503", false},
		{"undecodable by a 500", Undecodable(httpError{code: 500}), VerdictTerminal, "decode", false},
		{"undecodable by a 404", Undecodable(httpError{code: 404}), VerdictTerminal, "decode", false},
		{"undecodable in time", Undecodable(wrap(context.DeadlineExceeded)), VerdictRetry, "decode.timeout", false},
		{"undecodable by its own word", Undecodable(wrap(Retryable(errBare))), VerdictRetry, "unclassified", false},
		{"undecodable, terminal by its own word", Undecodable(Terminal(refused)), VerdictTerminal, "net.refused", false},
		{"undecodable and named", Undecodable(As(errBare, "avro.mismatch")), VerdictTerminal, "avro.mismatch", false},
		{"undecodable by a panic", Undecodable(&PanicError{Value: "boom"}), VerdictTerminal, "decode.panic.string", false},
		{"unsupported version", wrap(UnsupportedVersion(errBare)), VerdictTerminal, "unsupported-version", false},
		{"unsupported version of a decoder", Undecodable(UnsupportedVersion(refused)), VerdictTerminal, "unsupported-version", false},
		{"unsupported version, waited for", Retryable(UnsupportedVersion(errBare)), VerdictRetry, "unsupported-version", false},

		{"panic", &PanicError{Value: "boom"}, VerdictTerminal, "panic.string", false},
		{"panic with an error", &PanicError{Value: &skuError{1}}, VerdictTerminal, "panic.classify.skuError", false},
		{"panic with a mark", &PanicError{Value: Retryable(errBare)}, VerdictTerminal, "panic.classify.markedError", false},
		{"panic nil", &PanicError{}, VerdictTerminal, "panic.nil", false},
		{"permission", fs.ErrPermission, VerdictTerminal, "unclassified", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := new(Classifier).Classify(tt.err)
			if got.Verdict != tt.verdict || got.Class != tt.class || got.Default != tt.unknown {
				t.Errorf("Classify(%v) = %v, %q, default %v; want %v, %q, default %v",
					tt.err, got.Verdict, got.Class, got.Default, tt.verdict, tt.class, tt.unknown)
			}
			if len(got.Fingerprint) != 16 {
				t.Errorf("fingerprint %q, want 16 hex digits", got.Fingerprint)
			}
		})
	}
}

// If a whole topic fails, every record is classified: only the fingerprint may allocate. Not
// parallel: AllocsPerRun counts the process.
func TestClassifier_AllocatesTheFingerprintOnly(t *testing.T) {
	err := As(Retryable(fmt.Errorf("charge order 83127: %w", errBare)), "payment.busy")
	c := &Classifier{Rules: []Rule{Is(errBare, VerdictRetry, "bare"), Type[*skuError](VerdictRetry, "sku")}}
	if got := testing.AllocsPerRun(100, func() { sink = c.Classify(err) }); got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
	plain := fmt.Errorf("order 7: %w", &skuError{1})
	if got := testing.AllocsPerRun(100, func() { sink = new(Classifier).Classify(plain) }); got > 1 {
		t.Errorf("%v allocations for a typed error, want 1", got)
	}
}

// A consumer's breaker counts only failures that are terminal by default.
func TestClassifier_DefaultIsNotAnExplicitVerdict(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		c       *Classifier
		err     error
		verdict Verdict
		unknown bool
	}{
		{"zero value", &Classifier{}, errBare, VerdictTerminal, true},
		{"nil classifier", nil, errBare, VerdictTerminal, true},
		{"changed", &Classifier{Unknown: VerdictRetry}, errBare, VerdictRetry, true},
		{"changed to none", &Classifier{Unknown: 77}, errBare, VerdictTerminal, true},
		{"a class is no verdict", &Classifier{Unknown: VerdictRetry}, As(errBare, "x"), VerdictRetry, true},
		{"marked", &Classifier{Unknown: VerdictRetry}, Terminal(errBare), VerdictTerminal, false},
		{"rule", &Classifier{Rules: []Rule{Is(errBare, VerdictTerminal, "")}, Unknown: VerdictRetry}, errBare, VerdictTerminal, false},
		{"built-in", &Classifier{Unknown: VerdictDiscard}, context.Canceled, VerdictRetry, false},
	} {
		got := tt.c.Classify(tt.err)
		if got.Verdict != tt.verdict || got.Default != tt.unknown {
			t.Errorf("%s: verdict %v, default %v; want %v, %v", tt.name, got.Verdict, got.Default, tt.verdict, tt.unknown)
		}
	}
}

func TestClassifier_SurvivesHostileErrors(t *testing.T) {
	t.Parallel()
	var typedNil *skuError
	c := &Classifier{Rules: []Rule{
		Is(errors.New("other"), VerdictRetry, "other"),
		Is(uncomparable{}, VerdictRetry, "other"),
		Type[interface {
			error
			Missing()
		}](VerdictRetry, "other"),
		When(func(error) bool { panic("predicate") }, VerdictRetry, "other"),
	}}
	for _, tt := range []struct {
		err   error
		class string
	}{
		{hostile{}, "classify.hostile"},
		{&hostile{}, "classify.hostile"},
		{(*hostile)(nil), "classify.hostile"},
		{typedNil, "classify.skuError"},
		{(*PanicError)(nil), "unclassified"},
		{(*net.OpError)(nil), "net.OpError"},
		{hostileMany{}, "classify.hostileMany"},
		{&loop{}, "classify.loop"},
		{bush{}, "classify.bush"},
		{uncomparable{}, "classify.uncomparable"},
		{fmt.Errorf("x: %w", hostile{}), "classify.hostile"},
		{errors.Join(nil, hostile{}, errBare), "classify.hostile"},
		{&PanicError{Value: hostile{}}, "panic.classify.hostile"},
	} {
		got := c.Classify(tt.err)
		if got.Verdict != VerdictTerminal || got.Class != tt.class || len(got.Fingerprint) != 16 {
			t.Errorf("Classify(%T) = %+v, want terminal %s", tt.err, got, tt.class)
		}
	}
	// The marks around it and beside it still count.
	for _, r := range []Rule{
		Is(errBare, VerdictRetry, "known"),
		Type[*skuError](VerdictRetry, "known"),
	} {
		beside := errors.Join(hostile{}, errBare, &skuError{1})
		if got := (&Classifier{Rules: []Rule{r}}).Classify(beside); got.Verdict != VerdictRetry || got.Class != "known" {
			t.Errorf("Classify = %v %q, want retry, known", got.Verdict, got.Class)
		}
	}
	if got := c.Classify(As(Retryable(hostile{}), "known")); got.Verdict != VerdictRetry || got.Class != "known" {
		t.Errorf("Classify = %v %q, want retry, known", got.Verdict, got.Class)
	}
}

func TestClassifier_CanceledDialIsCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	if err == nil {
		t.Fatal("the dial succeeded")
	}
	if got := new(Classifier).Classify(err); got.Class != ClassCanceled || got.Verdict != VerdictRetry {
		t.Errorf("Classify(%v) = %v %q, want retry, canceled", err, got.Verdict, got.Class)
	}
}

// errorFrom builds an error by a small program: each byte wraps, joins or replaces the error so
// far.
func errorFrom(program []byte, text string) error {
	err := errors.New(text)
	for _, op := range program {
		n := int(op >> 5)
		switch op & 31 {
		case 0:
			err = Retryable(err)
		case 1:
			err = Terminal(err)
		case 2:
			err = Discard(err)
		case 3:
			err = RetryAfter(err, time.Duration(n-3)*time.Second)
		case 4:
			err = As(err, text)
		case 5:
			err = fmt.Errorf("%s %d: %w", text, n, err)
		case 6:
			err = errors.Join(err, context.Canceled)
		case 7:
			err = errors.Join(nil, &skuError{n}, err)
		case 8:
			err = fmt.Errorf("%w: %w", err, hostile{})
		case 9:
			err = &PanicError{Value: err, Stack: []byte(text)}
		case 10:
			err = &PanicError{Value: text, Stack: []byte("goroutine 1 [running]:\npanic(1)\n" + text)}
		case 11:
			err = httpError{code: n * 100, after: time.Second}
		case 12:
			err = &pgError{text}
		case 13:
			err = &grpcError{&grpcStatus{grpcCode(n * 3)}}
		case 14:
			err = syscall.Errno(op)
		case 15:
			err = io.ErrUnexpectedEOF
		case 16:
			err = &loop{}
		case 17:
			err = bush{}
		case 18:
			err = hostileMany{}
		case 19:
			err = (*hostile)(nil)
		case 20:
			err = (*PanicError)(nil)
		case 21:
			err = &called{err, []uintptr{uintptr(op), 1}}
		case 22:
			err = uncomparable{}
		}
	}
	return err
}

func FuzzClassifier(f *testing.F) {
	f.Add([]byte{0, 4, 5}, "tax table: miss 7", uint8(0))
	f.Add([]byte{8, 6, 7, 3}, "\xff\x00", uint8(1))
	f.Add([]byte{9, 4, 10, 5}, "main.f()\n\tx:1\n", uint8(2))
	f.Add([]byte{12, 5}, "40001", uint8(3))
	f.Fuzz(func(t *testing.T, program []byte, text string, unknown uint8) {
		if len(program) > 300 {
			return
		}
		err := errorFrom(program, text)
		c := &Classifier{Unknown: Verdict(unknown), Rules: []Rule{
			Is(uncomparable{}, VerdictRetry, text),
			Type[*skuError](Verdict(unknown), ""),
			When(func(error) bool { panic(text) }, VerdictRetry, "x"),
		}}
		got := c.Classify(err)
		if !classFormat.MatchString(got.Class) {
			t.Errorf("class %q", got.Class)
		}
		if got.Verdict > VerdictDiscard {
			t.Errorf("verdict %v", got.Verdict)
		}
		if len(got.Fingerprint) != 16 || strings.Trim(got.Fingerprint, "0123456789abcdef") != "" {
			t.Errorf("fingerprint %q", got.Fingerprint)
		}
		if got.RetryAfter < 0 || got.RetryAfter > 0 && got.Verdict != VerdictRetry {
			t.Errorf("retry after %v with verdict %v", got.RetryAfter, got.Verdict)
		}
		if len(got.Stack) > MaxStack {
			t.Errorf("%d bytes of stack", len(got.Stack))
		}
		if again := c.Classify(err); again != got {
			t.Errorf("a second time: %+v\nfirst: %+v", again, got)
		}
	})
}

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

func TestCleanClass_GivesAValidClass(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "",
		"orders.SKUError":        "orders.SKUError",
		"A-z_0./*":               "A-z_0./*",
		"tax table":              "tax_table",
		"größe":                  "gr__e",
		"a\x00b\xffc":            "a_b_c",
		"a:b,c":                  "a_b_c",
		"\u2028":                 "_",
		strings.Repeat("x", 200): strings.Repeat("x", 128),
		strings.Repeat("é", 200): strings.Repeat("_", 128),
	} {
		if got := CleanClass(in); got != want {
			t.Errorf("CleanClass(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestValidClass_IsTheFormat(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		s := string([]byte{byte(c)})
		if got, want := ValidClass(s), classFormat.MatchString(s); got != want {
			t.Errorf("ValidClass(%q) = %v, want %v", s, got, want)
		}
	}
	if ValidClass("") || ValidClass(strings.Repeat("x", 129)) {
		t.Error("an empty or too long class is valid")
	}
}

type pair[A, B any] struct{}

func (pair[A, B]) Error() string { return "pair" }

func TestClass_IsTheInnermostNamedType(t *testing.T) {
	t.Parallel()
	type local struct{ error }
	for _, tt := range []struct {
		err  error
		want string
	}{
		{pair[int, string]{}, "classify.pair_int_string_"},
		{local{errBare}, "classify.local"}, // embeds, does not wrap
		{struct{ error }{errBare}, "unclassified"},
	} {
		if got := new(Classifier).Classify(tt.err).Class; got != tt.want {
			t.Errorf("class of %T = %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestVerdict_MarksKeepTheErrorVisible(t *testing.T) {
	t.Parallel()
	cause := &skuError{4}
	inner := fmt.Errorf("order 7: %w", cause)
	for name, err := range map[string]error{
		"Retryable":  Retryable(inner),
		"Terminal":   Terminal(inner),
		"Discard":    Discard(inner),
		"RetryAfter": RetryAfter(inner, time.Second),
		"As":         As(inner, "orders.sku"),
	} {
		if !errors.Is(err, cause) {
			t.Errorf("%s: errors.Is does not see the cause", name)
		}
		if got, ok := errors.AsType[*skuError](err); !ok || got != cause {
			t.Errorf("%s: errors.As does not see the cause", name)
		}
		if errors.Unwrap(err) != inner {
			t.Errorf("%s: Unwrap = %v, want what was marked", name, errors.Unwrap(err))
		}
		if err.Error() != inner.Error() {
			t.Errorf("%s: message %q, want %q", name, err, inner)
		}
	}
}

// A handler can end with return classify.Retryable(call()).
func TestVerdict_MarksOfNilAreNil(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"Retryable":  Retryable(nil),
		"Terminal":   Terminal(nil),
		"Discard":    Discard(nil),
		"RetryAfter": RetryAfter(nil, time.Second),
		"As":         As(nil, "x"),
	} {
		if err != nil {
			t.Errorf("%s(nil) = %v, want nil", name, err)
		}
	}
	if got := new(Classifier).Classify(nil); got != (Result{}) {
		t.Errorf("Classify(nil) = %+v, want the zero Result", got)
	}
}

func TestRetryAfter_IsTheFirstDelayAskedFor(t *testing.T) {
	t.Parallel()
	limited := httpError{code: 429, after: 30 * time.Second}
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"none", Retryable(errBare), 0},
		{"handler", RetryAfter(errBare, time.Minute), time.Minute},
		{"negative", RetryAfter(errBare, -time.Minute), 0},
		{"outermost", RetryAfter(RetryAfter(errBare, time.Hour), time.Minute), time.Minute},
		{"under a verdict that agrees", Retryable(RetryAfter(errBare, time.Minute)), time.Minute},
		{"under one that does not", Terminal(RetryAfter(errBare, time.Minute)), 0},
		{"header", fmt.Errorf("call: %w", limited), 30 * time.Second},
		{"header under a mark", As(Retryable(limited), "pay.busy"), 30 * time.Second},
		{"handler before header", RetryAfter(limited, time.Minute), time.Minute},
		{"header of a terminal one", httpError{code: 404, after: time.Second}, 0},
		{"negative header", httpError{code: 503, after: -1}, 0},
	} {
		if got := new(Classifier).Classify(tt.err).RetryAfter; got != tt.want {
			t.Errorf("%s: RetryAfter = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestVerdict_String(t *testing.T) {
	t.Parallel()
	for v, want := range map[Verdict]string{
		VerdictTerminal: "terminal", VerdictRetry: "retry", VerdictDiscard: "discard", 9: "verdict(9)",
	} {
		if got := v.String(); got != want {
			t.Errorf("Verdict(%d) = %q, want %q", uint8(v), got, want)
		}
	}
}
