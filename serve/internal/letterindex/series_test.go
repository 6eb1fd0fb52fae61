package letterindex_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// Each letter is counted at its time. The classes with few letters are one, whatever their number.
func TestIndex_TimesCountByClass(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	from := time.Now().Add(-time.Hour).Truncate(time.Second)
	c.write(3, 0, "a", from)
	c.write(2, 1, "a", from.Add(20*time.Minute))
	c.write(4, 2, "b", from.Add(29*time.Minute+59*time.Second))
	c.write(1, 0, "c", from.Add(10*time.Minute))
	c.write(1, 0, "d", from.Add(10*time.Minute))
	c.write(5, 0, "e", from.Add(-time.Second))
	c.write(5, 0, "e", from.Add(30*time.Minute))
	c.discard(dlq.Filter{Classes: []string{"b"}})
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	refreshed(t, b)
	got := b.Times(&dlq.Filter{}, from, 10*time.Minute, 3, 2)
	for i, want := range []letterindex.Series{{Class: "a", Counts: []int64{3, 0, 2}}, {Class: "b", Counts: []int64{0, 0, 4}}, {Class: "", Counts: []int64{0, 2, 0}}} {
		if i >= len(got) || got[i].Class != want.Class || !slices.Equal(got[i].Counts, want.Counts) {
			t.Fatalf("the series are %v, want %v at %d", got, want, i)
		}
	}
	if got := b.Times(&dlq.Filter{Classes: []string{"b"}}, from, 10*time.Minute, 3, 2); len(got) != 1 || got[0].Class != "b" {
		t.Errorf("the series of a filter are %v", got)
	}
	if got := b.Times(&dlq.Filter{}, from, 0, -1, -1); len(got) != 0 {
		t.Errorf("without times: %v", got)
	}
}
