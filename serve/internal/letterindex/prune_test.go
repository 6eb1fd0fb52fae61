package letterindex_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// A deletion is there once, with its end, though the ledger has it twice; the latest comes first.
func TestPrunes_TellOfEachDeletionOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	b := letterindex.New("orders.dlq", "orders.dlq.ledger", c.opts...)
	for i, by := range []string{"ada", "bob"} {
		c.write(3+i, 0, "c", time.Now())
		c.discard(dlq.Filter{})
		refreshed(t, b)
		before := b.Changes()
		l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.opts...)
		p, err := l.Prunable(t.Context(), time.Time{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Prune(t.Context(), p, dlq.PruneOptions{By: by, Why: "old", Archive: "/tmp/a"}); err != nil {
			t.Fatal(err)
		}
		refreshed(t, b)
		if b.Changes() == before {
			t.Error("a deletion is no change")
		}
	}
	all := b.Prunes()
	if len(all) != 2 {
		t.Fatalf("the deletions are %+v, want two", all)
	}
	for i, want := range []ledgerrecord.Prune{{By: "bob", Letters: 4, Discarded: 4}, {By: "ada", Letters: 3, Discarded: 3}} {
		if got := all[i]; got.By != want.By || got.Why != "old" || got.Archive != "/tmp/a" || got.Letters != want.Letters || got.Discarded != want.Discarded || got.Deleted.IsZero() {
			t.Errorf("deletion %d is %+v, want %+v", i, got, want)
		}
	}
}
