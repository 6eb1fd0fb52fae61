package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

// sampled are cells as a row.
func sampled(cells ...any) []Field {
	return []Field{
		NewField("topic", "TOPIC", cells[0]),
		NewField("open", "OPEN", cells[1]).Right(),
		NewField("oldest", "OLDEST", cells[2]),
		NewField("failedAt", "LAST FAILURE", cells[3]),
		NewField("retentionMs", "KEPT", cells[4]),
		NewField("groups", "GROUPS", cells[5]),
		NewField("paused", "PAUSED", cells[6]),
		NewField("facts", "", cells[7]),
		NewField("message", "MESSAGE", cells[8]).MayCut(),
	}
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
		l := s.List()
		for _, r := range rows {
			if err := l.Row(sampled(r...)...); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		golden(t, "list."+string(f), out.Bytes())

		s, out, _ = fixed(f)
		if err := s.Object(sampled(rows[1]...)...); err != nil {
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
		l := s.List()
		if err := errors.Join(l.Row(NewField("v", "", text)), l.Close()); err != nil {
			t.Fatal(err)
		}
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

func TestAnEmptyListIsValid(t *testing.T) {
	t.Parallel()
	for f, want := range map[Format]string{Table: "", JSON: "[]\n", JSONL: ""} {
		s, out, _ := fixed(f)
		if err := s.List().Close(); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v; want %q", f, out, err, want)
		}
	}
}

func TestARowOfALineIsThereAtOnce(t *testing.T) {
	t.Parallel()
	s, out, _ := fixed(JSONL)
	l := s.List()
	for i := range 3 {
		if err := l.Row(NewField("n", "", i)); err != nil {
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
		l := s.List()
		lines := func() int {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			return strings.Count(out.String(), "\n")
		}
		row := func() {
			if err := l.Row(NewField("n", "N", 1)); err != nil {
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
	l := s.List()
	if err := l.Row(NewField("a", "A", "long in the first page"), NewField("b", "B", "x")); err != nil {
		t.Fatal(err)
	}
	for range 3 * pageRows {
		if err := l.Row(NewField("a", "A", "s"), NewField("b", "B", "x")); err != nil {
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
	}
	row := []Field{NewField("", "TOPIC", "orders.dlq"), NewField("", "MESSAGE", strings.Repeat("名", 60)).MayCut(), NewField("", "N", 1).Right()}
	if err := errors.Join(tb.add(row, Look{}), tb.flush()); err != nil {
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

// The first page chooses the columns, and what is wider on a later page is cut: it came on two lines.
func TestLaterPagesFitTheTerminalToo(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tb := &table{
		out: &b, limit: 40, heading: func(s string) string { return s },
	}
	for _, class := range []string{"tax", "tax.TableMiss", "tax", "java.lang.IllegalStateException"} {
		row := []Field{
			NewField("", "PLACE", "0:12345"), NewField("", "CLASS", class), NewField("", "GROUP", "billing").Spare(1),
			NewField("", "REASON", "terminal").Spare(2), NewField("", "N", 1).Right(),
		}
		if err := errors.Join(tb.add(row, Look{}), tb.flush()); err != nil {
			t.Fatal(err)
		}
	}
	want := `PLACE    CLASS  GROUP    REASON    N
0:12345  tax    billing  terminal  1
0:12345  tax.TableMi…  billing  terminal  1
0:12345  tax           billing  terminal  1
0:12345  java.lang.I…  billing  terminal  1
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
		l := s.List()
		err := errors.Join(l.Row(NewField("n", "N", 1)), l.Close())
		if !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", f, err, full)
		}
	}
}

type brokenPipe struct{ err error }

func (b brokenPipe) Write([]byte) (int, error) { return 0, b.err }
