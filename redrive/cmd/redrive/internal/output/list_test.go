package output

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestList_ARowOfALineIsThereAtOnce(t *testing.T) {
	t.Parallel()
	s, out, _ := fixed(JSONL)
	l := s.List()
	for i := range 3 {
		add(t, l, NewField("n", "", i))
		if got := strings.Count(out.String(), "\n"); got != i+1 {
			t.Errorf("%d lines after %d rows", got, i+1)
		}
	}
}

func TestList_EndsWhereTheStreamIsClosed(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, f := range []Format{Table, JSON, JSONL} {
		s := NewScreen(brokenPipe{full}, new(bytes.Buffer), func(string) string { return "" })
		s.Format = f
		l := s.List()
		err := errors.Join(l.Row(NewField("n", "N", 1)), l.Close())
		if !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", f, err, full)
		}
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }
