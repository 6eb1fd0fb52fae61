package letterindex_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// What was there before is not counted as having come, and what was deleted has come all the same.
func TestIndex_FlowCountsWhatComes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	c.write(3, 0, "decode", time.Now())
	refreshed(t, b)
	c.write(4, 1, "decode", time.Now())
	c.write(5, 1, "http.503", time.Now())
	refreshed(t, b)
	c.discard(dlq.Filter{})
	refreshed(t, b)
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
	p, err := l.Prunable(t.Context(), time.Time{}, nil)
	if err == nil {
		err = l.Prune(t.Context(), p, dlq.PruneOptions{By: "test"})
	}
	if err != nil {
		t.Fatal(err)
	}
	refreshed(t, b)
	if n := b.Progress().Letters; n != 0 {
		t.Fatalf("%d letters are left", n)
	}
	f := b.Flow()
	if f.Written["decode"] != 4 || f.Written["http.503"] != 5 {
		t.Errorf("the index saw %v come", f.Written)
	}
	if f.Outcomes[dlq.Discarded] != 0 {
		t.Errorf("letters that were not redriven have outcomes: %v", f.Outcomes)
	}
}
