package letterindex_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// One command of a person is one act, though it writes an entry for each letter. A later decision
// takes its letters away from no act that the index has read.
func TestIndex_ActsTellWhoDidWhat(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for n := range 12 {
		c.write(1, int32(n%3), fmt.Sprint("c", n%2), time.Now())
	}
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	refreshed(t, b)
	if acts := b.Acts(); len(acts) != 0 {
		t.Errorf("before anybody did something: %+v", acts)
	}
	before := b.Changes()
	c.discard(dlq.Filter{Classes: []string{"c1"}})
	refreshed(t, b)
	if b.Changes() == before {
		t.Error("a discard is no change")
	}
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
	if _, err := l.Reopen(t.Context(), dlq.Filter{Ranges: []dlq.Range{dlq.At(1, 0)}}, dlq.Cursor{}, dlq.ReopenOptions{By: "bob", Why: "a mistake"}); err != nil {
		t.Fatal(err)
	}
	refreshed(t, b)
	acts := b.Acts()
	if len(acts) != 2 {
		t.Fatalf("the acts are %+v, want two", acts)
	}
	if a := acts[0]; a.By != "bob" || a.Why != "a mistake" || a.State != dlq.Reopened || a.Letters != 1 {
		t.Errorf("the last act is %+v", a)
	}
	if a := acts[1]; a.By != "ada" || a.Why != "test" || a.State != dlq.Discarded || a.Letters != 6 || a.First.IsZero() || a.Last.Before(a.First) {
		t.Errorf("the first act is %+v", a)
	}
}
