package letterindex_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// Who goes from letter to letter sees those of the list, in its order, and back.
func TestBeside_GoesThroughTheList(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for n := range 30 {
		c.write(n%4, int32(n%3), fmt.Sprint("c", n%2), time.Now())
	}
	c.discard(dlq.Filter{Ranges: []dlq.Range{dlq.At(1, 3), dlq.At(2, 0)}})
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	refreshed(t, b)
	for _, test := range []struct {
		f        dlq.Filter
		resolved bool
	}{{dlq.Filter{Classes: []string{"c1"}}, false}, {dlq.Filter{}, true}, {dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 2), dlq.At(2, 1)}}, false}} {
		list, _, more := b.Page(&test.f, test.resolved, dlq.Cursor{}, 1000)
		if len(list) < 2 || more {
			t.Fatalf("the list has %d letters, more: %v", len(list), more)
		}
		for i, r := range list {
			before, after := letterindex.Beside(b, &test.f, test.resolved, r.Partition, r.Offset)
			var want [2]*letterindex.Row
			if i > 0 {
				want[0] = &list[i-1]
			}
			if i+1 < len(list) {
				want[1] = &list[i+1]
			}
			if got := [2]*letterindex.Row{before, after}; !slices.EqualFunc(got[:], want[:], func(a, b *letterindex.Row) bool { return a == b || a != nil && b != nil && *a == *b }) {
				t.Errorf("%+v: beside letter %d of the list are %+v and %+v", test, i, before, after)
			}
		}
	}
	// A letter that the filter does not select has its place among those that it selects.
	list, _, _ := b.Page(&dlq.Filter{Classes: []string{"c1"}}, false, dlq.Cursor{}, 1)
	if before, after := letterindex.Beside(b, &dlq.Filter{Classes: []string{"c0"}}, false, list[0].Partition, list[0].Offset); after == nil || before != nil && before.EnteredAt.Before(list[0].EnteredAt) {
		t.Errorf("beside the newest of another class are %+v and %+v", before, after)
	}
	if before, after := letterindex.Beside(b, &dlq.Filter{}, true, 0, 4711); before != nil || after != nil {
		t.Errorf("beside no letter are %+v and %+v", before, after)
	}
}
