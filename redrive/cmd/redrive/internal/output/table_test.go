package output

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The operator looks at an empty screen as long as the first rows wait for others.
func TestTable_ARowWaitsNoLongerThanAPage(t *testing.T) {
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
		row := func() { add(t, l, NewField("n", "N", 1)) }
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

// The columns of a long list moved from page to page, so that the eye lost them. A cell that is
// wider than those of the first page is cut in a terminal. The first column and numbers are not: a
// part of them means something else.
func TestTable_LaterPagesKeepTheColumns(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]string{
		50: `PLACE  CLASS            GROUP  N  MESSAGE
0:9    tax              名     1  no rate
0:10   tax.TableMiss    bill…  12  no 名前, and s…
1:123456  java.lang.I…  bill…  1  x
0:11   tax              -      1234567  x
`,
		36: `PLACE  CLASS       GROUP  N  MESSAGE
0:9    tax         名     1  no rate
0:10   tax.Table…  bill…  12  no 名…
1:123456  java.l…  bill…  1  x
0:11   tax         -      1234567  x
`,
		0: `PLACE  CLASS  GROUP  N  MESSAGE
0:9    tax    名     1  no rate
0:10   tax.TableMiss  billing  12  no 名前, and some more
1:123456  java.lang.IllegalStateException  billing  1  x
0:11   tax    -      1234567  x
`,
	} {
		var b bytes.Buffer
		tb := &table{out: &b, limit: limit}
		for _, r := range []struct {
			place, class, group string
			n                   int
			message             string
		}{
			{"0:9", "tax", "名", 1, "no rate"},
			{"0:10", "tax.TableMiss", "billing", 12, "no 名前, and some more"},
			{"1:123456", "java.lang.IllegalStateException", "billing", 1, "x"},
			{"0:11", "tax", "", 1234567, "x"},
		} {
			row := []Field{
				NewField("", "PLACE", r.place), NewField("", "CLASS", r.class).Least(15), NewField("", "GROUP", r.group),
				NewField("", "N", r.n).Right(), NewField("", "MESSAGE", r.message).MayCut(),
			}
			if err := errors.Join(tb.add(row, Look{}), tb.flush()); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.String(); got != want {
			t.Errorf("%d wide: got\n%s\nwant\n%s", limit, got, want)
		}
	}
}

// Lines that are too long although all is cut came on two lines, so that no column was where its
// title was.
func TestTable_DoesWithoutWhatIsNoUse(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tb := &table{out: &b, limit: 32}
	for _, n := range []string{"a name of a topic", "b"} {
		row := []Field{
			NewField("", "TOPIC", n), NewField("", "CLASS", "java.lang.IllegalStateException"),
			NewField("", "KEY", "a long key of a record").MayCut().Last(1), NewField("", "MESSAGE", "a long message").MayCut().Last(2),
			NewField("value", "", "a value that needs three lines, and ends on the last of them").Below(), NewField("none", "", nil).Below(),
		}
		if err := errors.Join(tb.add(row, Look{}), tb.flush()); err != nil {
			t.Fatal(err)
		}
	}
	const value = "  a value that needs three lines\n  , and ends on the last of them\n"
	want := "TOPIC              CLASS\na name of a topic  java.lang.Il…\n" + value + "b                  java.lang.Il…\n" + value
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
