package tier

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Budget bounds the bytes of the records that all tiers of a process hold in memory. Beyond it the
// records that are due last are evicted, and fetched again when they are due soon. Whatever the
// others hold, each tier has room for its next record, so that a long tier cannot starve a short
// one.
//
// While half of the budget is free a tier may use any of it. Beyond that each has its share: so a
// blocked lane with a pile of overdue records does not take the others' room.
//
// Its exported methods need no lock.
// See DESIGN.md, "Parked records".
type Budget struct {
	limit  int64
	resume func([]Lane)
	work   chan struct{} // has room for one: rebalance has something to do

	evictedBytes, refetchedBytes atomic.Int64

	mu         sync.Mutex
	bytes      int64
	holders    map[*Tier]struct{} // that hold a record
	horizon    int64              // Unix ms; no record due later is kept; MaxInt64 with room
	short      bool               // a record found no room since the last eviction
	freed      int64              // counts what may have made room
	lastFutile int64              // freed, when an eviction found nothing
	starved    map[*Tier]int64    // that found no room to fetch, and what freed was then
	paused     map[*Tier]struct{} // whose fetch waits for room
}

// soon is how long before their time evicted records are fetched again, in milliseconds: long
// enough for a leader to move meanwhile. An answer also has records that are due somewhat later.
// What is due within twice that time is kept, and is evicted for no record that is due later.
const soon = 3_000

// NewBudget makes a budget of so many bytes. resume is called, without a lock, with lanes whose
// [Lane.Reopen] was called.
func NewBudget(limit int64, resume func([]Lane)) *Budget {
	return &Budget{
		limit: limit, resume: resume, lastFutile: -1, work: make(chan struct{}, 1), horizon: math.MaxInt64,
		holders: map[*Tier]struct{}{}, starved: map[*Tier]int64{}, paused: map[*Tier]struct{}{},
	}
}

// Evicted counts the bytes of records that were evicted, or not kept when they were read.
func (b *Budget) Evicted() int64 { return b.evictedBytes.Load() }

// Refetched counts the bytes of records that were read again.
func (b *Budget) Refetched() int64 { return b.refetchedBytes.Load() }

// Run makes room where it is needed, and gives it to the tiers that wait for it, until ctx ends.
func (b *Budget) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.work:
			b.rebalance()
		}
	}
}

// admits reports whether the bytes of a record that was just read may be kept.
func (b *Budget) admits(due, size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if due > b.horizon {
		return false
	}
	if b.bytes+size > b.limit {
		b.short = true
		b.poke()
		return false
	}
	return true
}

// room is what a tier, which holds so many bytes, may fetch again.
func (b *Budget) room(held int64) room {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := b.share()
	r := room{bytes: b.limit - b.bytes, enough: min(b.limit/8, share/2), freed: b.freed}
	if b.bytes > b.limit/2 {
		r.bytes, r.over = min(r.bytes, share-held), max(held-share, 0)
	} else if b.horizon == math.MaxInt64 {
		r.early = b.limit/2 - b.bytes
	}
	r.bytes = max(r.bytes, 0)
	return r
}

// share is what each tier may hold while more than half of the budget is in use; the caller holds
// the lock.
func (b *Budget) share() int64 { return b.limit / 2 / int64(max(len(b.holders), 1)) }

// hold notes that a tier, which held no record, is about to.
func (b *Budget) hold(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders[t] = struct{}{}
}

// take adds bytes.
func (b *Budget) take(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += bytes
	b.lastFutile = -1
	if b.bytes > b.limit {
		b.short = true
		b.poke()
	}
}

// giveBack returns bytes.
func (b *Budget) giveBack(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= bytes
	if b.bytes < b.limit/2 {
		b.horizon = math.MaxInt64
	}
	b.notifyRoom()
}

// emptied notes that a tier holds no record any more.
func (b *Budget) emptied(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holders, t)
	b.notifyRoom()
}

// notifyRoom notes that there may be room; the caller holds the lock.
func (b *Budget) notifyRoom() {
	b.freed++
	if len(b.starved)+len(b.paused) > 0 {
		b.poke()
	}
}

// waitForRoom has rebalance start a tier's fetch of evicted records when there may be more room
// than there was at freed.
func (b *Budget) waitForRoom(t *Tier, freed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starved[t] = freed
	b.short = true
	b.poke()
}

// fed notes that a tier waits for no room any more.
func (b *Budget) fed(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.starved, t)
}

// pause has rebalance resume the fetch of a tier that paused.
func (b *Budget) pause(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused[t] = struct{}{}
}

// caughtUp has a tier's paused fetch looked at: none of its evicted records is due soon.
func (b *Budget) caughtUp(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.paused[t]; ok {
		b.poke()
	}
}

// reopened notes that the fetch of a tier goes on.
func (b *Budget) reopened(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.paused, t)
}

// remove lets go of a tier, which waits for no room any more.
func (b *Budget) remove(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.starved, t)
	delete(b.paused, t)
}

// poke calls for rebalance.
func (b *Budget) poke() {
	select {
	case b.work <- struct{}{}:
	default:
	}
}

// rebalance makes room where a record found none, and lets the tiers go on for which there is some.
// It locks one lane after the other, and holds no lock of its own meanwhile.
func (b *Budget) rebalance() {
	b.mu.Lock()
	// An eviction that found nothing finds nothing again until bytes are taken or given back.
	evict, freed := b.short && b.bytes > b.limit/4*3 && b.freed != b.lastFutile, b.freed
	b.short = false
	b.mu.Unlock()
	if evict && !b.evictFarthest() {
		b.mu.Lock()
		b.lastFutile = freed
		b.mu.Unlock()
	}
	b.mu.Lock()
	var starved []*Tier
	for t, freed := range b.starved {
		if freed != b.freed {
			starved = append(starved, t)
		}
	}
	paused := slices.Collect(maps.Keys(b.paused))
	roomy := b.bytes <= b.limit/4*3
	b.mu.Unlock()
	for _, t := range starved {
		t.retryRefetch()
	}
	var reopened []Lane
	for _, t := range paused {
		if t.reopen(roomy) {
			reopened = append(reopened, t.lane)
		}
	}
	if len(reopened) > 0 {
		b.resume(reopened)
	}
}

// evictFarthest evicts the records that are due farthest away, until a quarter of the budget is
// free. Those that are due soon come last, and only those of a tier that holds more than its share.
// It reports whether it evicted any.
func (b *Budget) evictFarthest() bool {
	now := time.Now().UnixMilli()
	b.mu.Lock()
	over := b.bytes - b.limit/4*3
	share := b.share()
	tiers := slices.Collect(maps.Keys(b.holders))
	b.mu.Unlock()
	if over <= 0 {
		return true
	}
	wanted := over

	type parked struct{ due, size int64 }
	var far []parked
	for _, t := range tiers {
		t.lane.Lock()
		for i := range t.parked {
			if r := &t.parked[i]; r.due > now+2*soon {
				far = append(far, parked{r.due, r.size()})
			}
		}
		t.lane.Unlock()
	}
	slices.SortFunc(far, func(a, b parked) int { return cmp.Compare(b.due, a.due) })
	cutoff := now + 2*soon + 1
	for sum, i := int64(0), 0; i < len(far) && sum < over; i++ {
		sum += far[i].size
		cutoff = far[i].due
	}
	b.mu.Lock()
	b.horizon = cutoff
	b.mu.Unlock()
	for _, t := range tiers {
		if over > 0 {
			t.lane.Lock()
			over -= t.evict(cutoff, over)
			t.lane.Unlock()
		}
	}
	for _, t := range tiers {
		if over > 0 {
			t.lane.Lock()
			over -= t.evict(math.MinInt64, min(over, t.inMemoryBytes-share))
			t.lane.Unlock()
		}
	}
	return over < wanted
}

// room is how much of the budget there is for a tier.
type room struct {
	bytes  int64
	early  int64 // of these, for records that are not due soon
	over   int64 // what the tier holds beyond its share
	enough int64 // to begin with: else a block would be fetched for every record of it
	freed  int64 // to be given to waitForRoom if it is not enough
}

// suffices reports whether there is room for a record, and for much of what is wanted.
func (r room) suffices(each, want int64) bool {
	return r.bytes >= each && r.bytes >= min(r.enough, want)
}
