package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
)

func TestList_JSONIsTheSameTextToItsReader(t *testing.T) {
	t.Parallel()
	const text = "\x1b[2J \x7f \u009b2J \u200b \u202e \U000e0001 \\u009b \u2028 <&>"
	for _, f := range []Format{JSON, JSONL} {
		s, out, _ := fixed(f)
		l := s.List()
		add(t, l, NewField("v", "", text))
		end(t, l)
		for _, r := range out.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s: %U stands raw in %q", f, r, out)
			}
		}
		var got struct{ V string }
		if f == JSON {
			var list []struct{ V string }
			if err := json.Unmarshal(out.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
			got = list[0]
		} else if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.V != text {
			t.Errorf("%s: read back %q, want %q", f, got.V, text)
		}
	}
}

func TestList_EmptyIsValid(t *testing.T) {
	t.Parallel()
	for f, want := range map[Format]string{Table: "", JSON: "[]\n", JSONL: ""} {
		s, out, _ := fixed(f)
		if err := s.List().Close(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", f, out, err, want)
		}
	}
}

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
