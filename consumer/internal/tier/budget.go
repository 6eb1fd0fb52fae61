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
// records that are due last are evicted, and fetched again shortly before they are due. Each tier
// always has room for its next record, so that a long tier cannot starve a short one.
//
// Up to five eighths of the budget are first come, first served. Beyond them a tier has its share,
// so that a blocked lane with many overdue records cannot starve the others.
//
// Its exported methods are safe for concurrent use, and need no lane's lock.
// See DESIGN.md, "Parked records".
type Budget struct {
	limit  int64
	resume func([]Lane)
	work   chan struct{} // capacity 1: a call for rebalance

	evictedBytes, refetchedBytes atomic.Int64

	mu         sync.Mutex
	bytes      int64
	holders    map[*Tier]struct{} // tiers that hold a record
	horizon    int64              // Unix ms; no record due later is kept; MaxInt64 with room
	short      bool               // a record found no room since the last eviction
	freed      int64              // counts the events that may have made room
	lastFutile int64              // freed at the last eviction that found nothing
	starved    map[*Tier]int64    // tiers that found no room to fetch, and freed at that time
	paused     map[*Tier]struct{} // tiers whose fetch waits for room
}

// NewBudget makes a budget of limit bytes. It calls resume, without a lock, with the lanes whose
// [Lane.Reopen] it called.
func NewBudget(limit int64, resume func([]Lane)) *Budget {
	return &Budget{
		limit: limit, resume: resume, lastFutile: -1, work: make(chan struct{}, 1), horizon: math.MaxInt64,
		holders: map[*Tier]struct{}{}, starved: map[*Tier]int64{}, paused: map[*Tier]struct{}{},
	}
}

// Evicted returns the total bytes of the records that were evicted, or not kept when they were
// read.
func (b *Budget) Evicted() int64 { return b.evictedBytes.Load() }

// Refetched returns the total bytes of the records that were fetched again.
func (b *Budget) Refetched() int64 { return b.refetchedBytes.Load() }

// Run makes room when a record found none, and notifies the tiers that wait for room. It returns
// when ctx ends.
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

// room returns how much t may fetch again. It holds held bytes, and may hold in all what no
// eviction takes: its share, or more while the tiers use less than five eighths of the budget. That
// is an eighth less than an eviction leaves them, so what it took is not fetched again at once.
func (b *Budget) room(t *Tier, held int64) room {
	b.mu.Lock()
	defer b.mu.Unlock()
	share := b.share()
	if _, holds := b.holders[t]; !holds {
		share = b.limit / 2 / int64(len(b.holders)+1)
	}
	free := b.limit/8*5 - b.bytes
	r := room{bytes: max(min(max(share-held, free), b.limit-b.bytes), 0), enough: min(b.limit/8, share/2), freed: b.freed}
	if free < 0 {
		r.over = max(held-share, 0)
	}
	return r
}

// share returns what each tier may hold however much the others hold, in bytes. The caller holds
// the lock.
func (b *Budget) share() int64 { return b.limit / 2 / int64(max(len(b.holders), 1)) }

// hold registers that a tier without records takes its first.
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

// emptied registers that a tier holds no record any more.
func (b *Budget) emptied(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holders, t)
	b.notifyRoom()
}

// notifyRoom registers that there may be room. The caller holds the lock.
func (b *Budget) notifyRoom() {
	b.freed++
	if len(b.starved)+len(b.paused) > 0 {
		b.poke()
	}
}

// waitForRoom makes rebalance start a tier's fetch of evicted records once there may be more room.
// freed is [room].freed of the room that did not suffice.
func (b *Budget) waitForRoom(t *Tier, freed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.starved[t] = freed
	b.short = true
	b.poke()
}

// fed registers that a tier no longer waits for room.
func (b *Budget) fed(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.starved, t)
}

// pause makes rebalance resume a tier's paused fetch when it can.
func (b *Budget) pause(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused[t] = struct{}{}
}

// reopened registers that a tier's fetch is no longer paused.
func (b *Budget) reopened(t *Tier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.paused, t)
}

// remove ends all waits of a tier.
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

// rebalance makes room if a record found none, and resumes the tiers for which there is room. It
// locks one lane after another, without the budget's lock.
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

// evictFarthest evicts the records that are due last, until a quarter of the budget is free.
// Records that are due soon come at the end, and only those of tiers that hold more than their
// share. evictFarthest reports whether it evicted any, or a quarter was free already.
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
			if r := &t.parked[i]; r.due > now+t.cfg.reach() {
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
			over -= t.evict(max(cutoff, now+t.cfg.reach()+1), over)
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
