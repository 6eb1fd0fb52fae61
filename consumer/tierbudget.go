package consumer

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

// tierBudget is the budget of bytes for the records of tiers, one for the process. Over it the records that are due farthest away
// give up their bytes and stay in their feed's evictedIndex; they are fetched again (refetch.go) when they are due soon. Whatever
// the others hold, each feed has room for its next record, so that a long tier cannot starve a short one.
//
// While half of the budget is free a feed may use any of it, beyond that each has its share: so a lane that is blocked, with a
// pile of records that are overdue, does not take the others' room.
// See DESIGN.md, "Parked records".
type tierBudget struct {
	limit  int64
	pauser *fetchPauser
	lanes  func() []*lane
	work   chan struct{} // has room for one: settle has something to do

	evictedBytes, refetchedBytes atomic.Int64 // bytes given up, and bytes of records read again

	mu         sync.Mutex
	bytes      int64
	holders    int             // feeds that hold a record
	horizon    int64           // due time, Unix milliseconds, behind which no record is kept; MaxInt64 while there is room
	short      bool            // somebody was refused since the last squeeze
	freed      int64           // counts what may have made room
	lastFutile int64           // given, when a squeeze found nothing
	starved    map[*feed]int64 // feeds that would fetch again, by what given was when there was no room
	paused     map[*feed]struct{}
}

// soon is how long before their time records are fetched again, in milliseconds: long enough for a leader to move meanwhile. An answer
// also has records that are due somewhat later; what is due within twice that time is kept, and gives up its bytes for none that is
// due later.
const soon = 3_000

func newTierBudget(limit int64, g *fetchPauser, lanes func() []*lane) *tierBudget {
	return &tierBudget{
		limit: limit, pauser: g, lastFutile: -1, lanes: lanes, work: make(chan struct{}, 1),
		horizon: math.MaxInt64, starved: map[*feed]int64{}, paused: map[*feed]struct{}{},
	}
}

// admits reports whether the bytes of a record that was just read may be kept.
func (p *tierBudget) admits(due, size int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if due > p.horizon {
		return false
	}
	if p.bytes+size > p.limit {
		p.short = true
		p.poke()
		return false
	}
	return true
}

// room is what a feed, which holds so many bytes, may fetch again.
func (p *tierBudget) room(held int64) room {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := p.share()
	r := room{bytes: p.limit - p.bytes, enough: min(p.limit/8, share/2), freed: p.freed}
	if p.bytes > p.limit/2 {
		r.bytes, r.over = min(r.bytes, share-held), max(held-share, 0)
	} else if p.horizon == math.MaxInt64 {
		r.early = p.limit/2 - p.bytes
	}
	r.bytes = max(r.bytes, 0)
	return r
}

// share is what each feed may hold while more than half of the budget is in use; the caller holds the lock.
func (p *tierBudget) share() int64 { return p.limit / 2 / int64(max(p.holders, 1)) }

// take adds a record that a feed keeps; first tells that the feed kept none before.
func (p *tierBudget) take(bytes int64, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
	p.lastFutile = -1
	if first {
		p.holders++
	}
	if p.bytes > p.limit {
		p.short = true
		p.poke()
	}
}

// giveBack returns bytes.
func (p *tierBudget) giveBack(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= bytes
	if p.bytes < p.limit/2 {
		p.horizon = math.MaxInt64
	}
	p.notifyRoom()
}

// emptied tells that a feed keeps no record any more.
func (p *tierBudget) emptied() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders--
	p.notifyRoom()
}

// notifyRoom notes that there may be room; the caller holds the lock.
func (p *tierBudget) notifyRoom() {
	p.freed++
	if len(p.starved)+len(p.paused) > 0 {
		p.poke()
	}
}

// waitForRoom has settle start the feed's fetching again when there may be more room than there was at given.
func (p *tierBudget) waitForRoom(f *feed, given int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starved[f] = given
	p.short = true
	p.poke()
}

// pausedBy has settle let the fetch of a feed go on that paused.
func (p *tierBudget) pausedBy(f *feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused[f] = struct{}{}
}

// fed tells that a feed waits no more.
func (p *tierBudget) fed(f *feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.starved, f)
}

// reopened tells that the fetch of a feed goes on.
func (p *tierBudget) reopened(f *feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.paused, f)
}

// remove lets go of a feed.
func (p *tierBudget) remove(f *feed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.starved, f)
	delete(p.paused, f)
}

// poke calls for settle.
func (p *tierBudget) poke() {
	select {
	case p.work <- struct{}{}:
	default:
	}
}

// loop settles until ctx ends.
func (p *tierBudget) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.work:
			p.rebalance()
		}
	}
}

// rebalance makes room where somebody was refused, and lets those go on for whom there is some. It locks one lane after the
// other, and holds no lock of its own meanwhile.
func (p *tierBudget) rebalance() {
	p.mu.Lock()
	// Squeezed in vain, it would be so again until somebody takes or gives.
	squeeze, given := p.short && p.bytes > p.limit/4*3 && p.freed != p.lastFutile, p.freed
	p.short = false
	p.mu.Unlock()
	if squeeze && !p.evictFarthest() {
		p.mu.Lock()
		p.lastFutile = given
		p.mu.Unlock()
	}
	p.mu.Lock()
	var hungry []*feed
	for f, given := range p.starved {
		if given != p.freed {
			hungry = append(hungry, f)
		}
	}
	shut := slices.Collect(maps.Keys(p.paused))
	roomy := p.bytes <= p.limit/4*3
	p.mu.Unlock()
	for _, f := range hungry {
		f.retryRefetch()
	}
	var opened []*feed
	for _, f := range shut {
		if f.reopen(roomy) {
			opened = append(opened, f)
		}
	}
	p.pauser.apply(opened...)
}

// evictFarthest has the records that are due farthest away give up their bytes until a quarter of the budget is free. Those that are
// due soon come last, and only where their feed has more than its share. It reports whether any did.
func (p *tierBudget) evictFarthest() bool {
	now := time.Now().UnixMilli()
	p.mu.Lock()
	over := p.bytes - p.limit/4*3
	share := p.share()
	p.mu.Unlock()
	if over <= 0 {
		return true
	}
	wanted := over

	type parked struct{ due, size int64 }
	var far []parked
	lanes := p.lanes()
	for _, l := range lanes {
		l.mu.Lock()
		for _, f := range l.tiers() {
			for i := range f.parked {
				if r := &f.parked[i]; r.due > now+2*soon {
					far = append(far, parked{r.due, r.size()})
				}
			}
		}
		l.mu.Unlock()
	}
	slices.SortFunc(far, func(a, b parked) int { return cmp.Compare(b.due, a.due) })
	cutoff := now + 2*soon + 1
	for sum, i := int64(0), 0; i < len(far) && sum < over; i++ {
		sum += far[i].size
		cutoff = far[i].due
	}
	p.mu.Lock()
	p.horizon = cutoff
	p.mu.Unlock()
	for _, l := range lanes {
		l.mu.Lock()
		for _, f := range l.tiers() {
			if over > 0 {
				over -= f.evict(cutoff, over)
			}
		}
		l.mu.Unlock()
	}
	for _, l := range lanes {
		l.mu.Lock()
		for _, f := range l.tiers() {
			if over > 0 && f.inMemoryBytes > share {
				over -= f.evict(math.MinInt64, min(over, f.inMemoryBytes-share))
			}
		}
		l.mu.Unlock()
	}
	return over < wanted
}

// room is how much of the budget there is for a feed.
type room struct {
	bytes  int64
	early  int64 // of these, for records that are not due soon
	over   int64 // what the feed holds beyond its share
	enough int64 // to begin with: else a block would be fetched for every record of it
	freed  int64 // what to tell wait if it is not
}

// suffices reports whether there is room for a record, and for much of what is wanted.
func (r room) suffices(each, want int64) bool {
	return r.bytes >= each && r.bytes >= min(r.enough, want)
}
