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
	"strconv"
	"syscall"
	"testing"

	"github.com/sidingkafka/siding/internal/cases"
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
		{"grpc by an interface", grpcLike{&grpcStatus{14}}, VerdictRetry, "grpc.Unavailable", false},
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

// If a whole topic fails, every record is classified. An error's own text is not counted where fmt
// has made it before. Not parallel: AllocsPerRun counts the process.
func TestClassifier_AllocatesLittle(t *testing.T) {
	cases.Alone(t) // and the race detector has pools drop what they keep
	wrap := func(err error) error { return fmt.Errorf("charge order 83127: %w", err) }
	refused := &net.OpError{
		Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080},
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
	}
	rules := &Classifier{Rules: []Rule{Is(errBare, VerdictRetry, "bare"), Type[*skuError](VerdictRetry, "sku")}}
	for _, tt := range []struct {
		name string
		c    *Classifier
		err  error
		most float64
	}{
		{"bare", nil, errBare, 0},
		{"wrapped bare", nil, wrap(errBare), 0},
		{"marked, named and by rules", rules, As(Retryable(wrap(errBare)), "payment.busy"), 0},
		{"typed", nil, wrap(&skuError{1}), 0},
		{"deadline", nil, context.DeadlineExceeded, 0},
		{"canceled", nil, wrap(context.Canceled), 0},
		{"eof", nil, io.ErrUnexpectedEOF, 0},
		{"bad connection", nil, wrap(driver.ErrBadConn), 0},
		{"http", nil, wrap(httpError{code: 503}), 0},
		{"http, and its text", nil, httpError{code: 503}, 2},
		{"refused", nil, refused, 1},
		{"refused http client", nil, &url.Error{Op: "Get", URL: "http://10.0.0.7:8080/", Err: refused}, 1},
		{"grpc", nil, wrap(&grpcError{&grpcStatus{14}}), 3},
	} {
		if got := testing.AllocsPerRun(100, func() { sink = tt.c.Classify(tt.err) }); got > tt.most {
			t.Errorf("%s: %v allocations, want at most %v", tt.name, got, tt.most)
		}
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

func (pair[A, B]) Error() string { return "pair" }
