package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var sample = []Column{
	{Key: "topic", Title: "TOPIC"},
	{Key: "open", Title: "OPEN", Right: true},
	{Key: "oldest", Title: "OLDEST"},
	{Key: "failedAt", Title: "LAST FAILURE"},
	{Key: "retentionMs", Title: "KEPT"},
	{Key: "groups", Title: "GROUPS"},
	{Key: "paused", Title: "PAUSED"},
	{Key: "facts"},
	{Key: "message", Title: "MESSAGE", Cut: true},
}

var rows = [][]any{
	{"orders.dlq", int64(40000), Ago(noon.Add(-90 * time.Minute)), noon.Add(-time.Second).In(time.FixedZone("east", 3600)), 14 * 24 * time.Hour, []string{"billing", "audit"}, true, map[string]int{"a": 1}, "no route to <host> & back"},
	{"p.dlq", 3, Ago(noon.Add(50 * time.Hour)), time.Time{}, 5 * time.Minute, []string(nil), false, nil, "sku 名前 \x1b[31mred\nnext \u009b2J \u202e \xff \U000e0001"},
	{"none", nil, Ago{}, nil, nil, []string{}, nil, nil, Pair{"shown", json.RawMessage(`{"n": 9007199254740993}`)}},
}

func TestEachFormatIsWhatItWas(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{Table, JSON, JSONL} {
		s, out, _ := fixed(f)
		l := s.List(sample...)
		for _, r := range rows {
			if err := l.Row(r...); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		golden(t, "list."+string(f), out.Bytes())

		s, out, _ = fixed(f)
		var fields []Field
		for i, c := range sample {
			fields = append(fields, Field{c, rows[1][i]})
		}
		if err := s.Object(fields...); err != nil {
			t.Fatal(err)
		}
		golden(t, "object."+string(f), out.Bytes())
	}
}

func TestJSONIsTheSameTextToItsReader(t *testing.T) {
	t.Parallel()
	const text = "\x1b[2J \x7f \u009b2J \u200b \u202e \U000e0001 \\u009b \u2028 <&>"
	for _, f := range []Format{JSON, JSONL} {
		s, out, _ := fixed(f)
		l := s.List(Column{Key: "v"})
		if err := errors.Join(l.Row(text), l.Close()); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && unprintable(r) {
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

func TestAnEmptyListIsValid(t *testing.T) {
	t.Parallel()
	for f, want := range map[Format]string{Table: "", JSON: "[]\n", JSONL: ""} {
		s, out, _ := fixed(f)
		if err := s.List(sample...).Close(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", f, out, err, want)
		}
	}
}

func TestARowOfALineIsThereAtOnce(t *testing.T) {
	t.Parallel()
	s, out, _ := fixed(JSONL)
	l := s.List(Column{Key: "n"})
	for i := range 3 {
		if err := l.Row(i); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), "\n"); got != i+1 {
			t.Errorf("%d lines after %d rows", got, i+1)
		}
	}
}

// The operator looks at an empty screen as long as the first rows wait for others.
func TestARowOfATableWaitsNoLongerThanAPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, out, _ := fixed(Table)
		l := s.List(Column{Key: "n", Title: "N"})
		lines := func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return strings.Count(out.String(), "\n")
		}
		row := func() {
			if err := l.Row(1); err != nil {
				t.Fatal(err)
			}
		}
		row()
		time.Sleep(pageWait - time.Millisecond)
		if got := lines(); got != 0 {
			t.Errorf("%d lines before the page's time, want 0", got)
		}
		time.Sleep(2 * time.Millisecond)
		if got := lines(); got != 2 {
			t.Errorf("%d lines after the page's time, want heading and row", got)
		}
		for range pageRows {
			row()
		}
		if got := lines(); got != 2+pageRows {
			t.Errorf("%d lines after a full page, want %d", got, 2+pageRows)
		}
		row()
		time.Sleep(pageWait + time.Millisecond)
		if got := lines(); got != 3+pageRows {
			t.Errorf("%d lines after the page's time, want %d", got, 3+pageRows)
		}
	})
}

func TestColumnsOfALongListStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	s, out, _ := fixed(Table)
	l := s.List(Column{Key: "a", Title: "A"}, Column{Key: "b", Title: "B"})
	if err := l.Row("long in the first page", "x"); err != nil {
		t.Fatal(err)
	}
	for range 3 * pageRows {
		if err := l.Row("s", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2+3*pageRows {
		t.Fatalf("%d lines, want %d", len(lines), 2+3*pageRows)
	}
	for i, line := range lines[1:] {
		if got, want := strings.Index(line, "x"), len("long in the first page")+len(gap); got != want {
			t.Fatalf("row %d: the second column is at %d, want %d: %q", i, got, want, line)
		}
	}
}

func TestALineFitsTheTerminalWhereAColumnMayBeCut(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tb := &table{
		out: &b, limit: 40, heading: func(s string) string { return s },
		columns: []Column{{Title: "TOPIC"}, {Title: "MESSAGE", Cut: true}, {Title: "N", Right: true}},
	}
	if err := errors.Join(tb.add([]string{"orders.dlq", strings.Repeat("名", 60), "1"}), tb.flush()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for _, line := range lines {
		if width(line) > 40 {
			t.Errorf("%d wide, want 40 at most: %q", width(line), line)
		}
	}
	if !strings.HasSuffix(lines[1], "…   1") && !strings.HasSuffix(lines[1], "…  1") {
		t.Errorf("%q does not show that it was cut", lines[1])
	}
}

// The columns were chosen by the first page, and what was wider came on two lines.
func TestLaterPagesFitTheTerminalToo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tb := &table{
		out: &b, limit: 40, heading: func(s string) string { return s },
		columns: []Column{{Title: "PLACE"}, {Title: "CLASS"}, {Title: "GROUP", Spare: 1}, {Title: "REASON", Spare: 2}, {Title: "N", Right: true}},
	}
	for _, class := range []string{"tax", "tax.TableMiss", "tax", "java.lang.IllegalStateException"} {
		if err := errors.Join(tb.add([]string{"0:12345", class, "billing", "terminal", "1"}), tb.flush()); err != nil {
			t.Fatal(err)
		}
	}
	want := `PLACE    CLASS  GROUP    REASON    N
0:12345  tax    billing  terminal  1
PLACE    CLASS          GROUP    N
0:12345  tax.TableMiss  billing  1
0:12345  tax            billing  1
PLACE    CLASS                         N
0:12345  java.lang.IllegalStateExcep…  1
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAStreamThatIsClosedEndsTheList(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, f := range []Format{Table, JSON, JSONL} {
		s := NewScreen(brokenPipe{full}, new(bytes.Buffer), func(string) string { return "" })
		s.Format = f
		l := s.List(Column{Key: "n", Title: "N"})
		err := errors.Join(l.Row(1), l.Close())
		if !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", f, err, full)
		}
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }
