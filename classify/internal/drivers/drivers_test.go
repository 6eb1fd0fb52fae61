package drivers_test

import (
	"net"
	"testing"

	"github.com/sidingkafka/siding/classify"
)

// means checks the meaning of an error without rules. An unknown verdict is the zero Verdict, by
// default.
func means(t *testing.T, what string, err error, class, verdict string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	r := new(classify.Classifier).Classify(err)
	if r.Class != class || verdictOf(r) != verdict {
		t.Errorf("%s: %v (%T) is %s of class %s, want %s of class %s", what, err, err, verdictOf(r), r.Class, verdict, class)
	}
}

// verdictOf returns the verdict in the words of the table of docs/classification.md.
func verdictOf(r classify.Result) string {
	if r.Default {
		return "unknown"
	}
	return r.Verdict.String()
}

// listen accepts connections until the test ends, serves each by a goroutine, and returns its
// address.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// hangUp closes a connection after the request arrived. It reads the request first: unread bytes
// would turn the close into a reset.
func hangUp(c net.Conn) {
	var b [8192]byte
	_, _ = c.Read(b[:])
}

// closedPort is an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
