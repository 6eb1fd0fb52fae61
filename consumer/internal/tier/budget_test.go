package tier

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A record was admitted by its packed size and unpacked when it was due, long before a worker had
// it. Thousands of tiny headers took several times the budget then.
func TestBudget_HoldsWhileRecordsWaitForAWorker(t *testing.T) {
	t.Parallel()
	env := testEnv()
	f, l := newTier(t, env)
	b := env.Budget
	offset := int64(0)
	for f.admit(bomb(offset, 2000), 1) {
		offset++
	}
	f.evicted = evictedIndex{}
	l.Lock()
	f.Promote()
	l.Unlock()
	if f.lane.Ready() != int(offset) || offset < 40 {
		t.Fatalf("%d of %d records are ready, want all, and some dozens", f.lane.Ready(), offset)
	}
	if b.bytes > b.limit {
		t.Errorf("%d bytes are kept of a budget of %d", b.bytes, b.limit)
	}
	for len(l.ready) > 0 {
		before, it := b.bytes, l.ready[0]
		packed := it.size
		l.work(f, func(*kgo.Record) {
			if more := b.bytes - before; more < 2000*40 || it.size != packed+more {
				t.Fatalf("%d bytes of %d packed ones count %d more with a worker, want those of the headers", it.size, packed, more)
			}
		})
	}
	if b.bytes != 0 || f.inMemoryBytes != 0 || len(b.holders) != 0 {
		t.Errorf("%d bytes by %d tiers are left when all have run, %d of this one; want none", b.bytes, len(b.holders), f.inMemoryBytes)
	}
}
