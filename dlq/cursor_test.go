package dlq

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCursor_TextFormIsStable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cursor Cursor
		want   string
	}{
		{Cursor{}, "v1//"},
		{Cursor{Topic: "orders.dlq"}, "v1/orders.dlq/"},
		{
			Cursor{Topic: "orders.dlq", At: map[int32]int64{0: 17, 2: 0, 10: 3}, End: map[int32]int64{0: 42, 1: 9, 10: 3}},
			"v1/orders.dlq/0:17-42,1:-9,2:0-,10:3-3",
		},
	} {
		if got := c.cursor.String(); got != c.want {
			t.Errorf("String = %q, want %q", got, c.want)
		}
		got, err := ParseCursor(c.want)
		if err != nil {
			t.Errorf("ParseCursor(%q): %v", c.want, err)
		}
		if diff := cmp.Diff(c.cursor, got); diff != "" {
			t.Errorf("ParseCursor(%q): %s", c.want, diff)
		}
	}
}

func TestParseCursor_RefusesABrokenOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "written by a newer version"},
		{"v2/orders.dlq/0:1-2", "written by a newer version"},
		{"v1/orders.dlq", "the partitions are missing"},
		{"v1/orders.dlq/0", `"0" is not partition:next-end`},
		{"v1/orders.dlq/0:", `"0:" is not partition:next-end`},
		{"v1/orders.dlq/0:-", `"0:-" is not partition:next-end`},
		{"v1/orders.dlq/0:1-2,", `"" is not partition:next-end`},
		{"v1/orders.dlq/x:1-2", `"x" is not the number of a partition`},
		{"v1/orders.dlq/2147483648:1-2", "is not the number of a partition"},
		{"v1/orders.dlq/0:1-2,0:1-2", "partition 0 is named twice"},
		{"v1/orders.dlq/0:x-2", `"x" is not an offset`},
		{"v1/orders.dlq/0:1--2", `"-2" is not an offset`},
		{"v1/orders.dlq/0:1-9223372036854775808", "is not an offset"},
	} {
		if _, err := ParseCursor(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseCursor(%q) = %v, want an error that says %q", c.text, err, c.want)
		}
	}
}

func TestCursor_NeverGoesBack(t *testing.T) {
	t.Parallel()
	var c Cursor
	for _, offset := range []int64{3, 1} {
		c.Advance(&Letter{Record: &kgo.Record{Partition: 1, Offset: offset}})
	}
	if got := c.At[1]; got != 4 {
		t.Errorf("at = %d, want 4", got)
	}
	for _, d := range []struct {
		end  map[int32]int64
		want bool
	}{{nil, false}, {map[int32]int64{1: 5}, false}, {map[int32]int64{1: 4}, true}, {map[int32]int64{1: 4, 2: 0}, true}, {map[int32]int64{1: 4, 2: 1}, false}} {
		c.End = d.end
		if got := c.Done(); got != d.want {
			t.Errorf("%s: Done = %v, want %v", c, got, d.want)
		}
	}
}

func FuzzCursor_RoundTrips(f *testing.F) {
	f.Add("v1//")
	f.Add("v1/orders.dlq/0:17-42,1:-9,2:0-,10:3-3")
	f.Add("v1/a/b/0:1-2")
	f.Add("v1/orders.dlq/007:01-")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor(text)
		if err != nil {
			return
		}
		again, err := ParseCursor(c.String())
		if err != nil {
			t.Fatalf("%q parses, its own form %q does not: %v", text, c, err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	})
}
