package tier

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// Evicted records are fetched again block by block, by siding's own requests. A consuming client
// would read ahead, and throw away all that it read beyond the block.

const (
	// maxRefetch bounds a request, in bytes.
	maxRefetch = 1 << 20
	// maxRefetchWait bounds the wait before the next try while the fetches of all blocks fail.
	maxRefetchWait = 5 * time.Second
	// maxBlockWait bounds it while those of one block fail. It is shorter than soon, so another
	// block that becomes due is fetched in time. The failing block is put off for longer.
	maxBlockWait = 2 * time.Second
)

// mayFetch reports whether evicted records could be fetched again now.
func (t *Tier) mayFetch() bool { return !t.refetching && (!t.starved || t.isNext(t.evicted.due())) }

// refetch starts the fetch of evicted records if some are due soon.
func (t *Tier) refetch(now int64) {
	if !t.mayFetch() || t.evicted.due() > now+soon {
		return
	}
	t.feed()
	t.refetching = true
	t.env.Go(t.refetchLoop)
}

// feed ends the wait for room.
func (t *Tier) feed() {
	if t.starved {
		t.starved = false
		t.env.Budget.fed(t)
	}
}

// retryRefetch starts the fetch of a starved tier if there is room now. It takes the lane's lock.
func (t *Tier) retryRefetch() {
	t.lane.Lock()
	defer t.lane.Unlock()
	now := time.Now().UnixMilli()
	if !t.starved || t.lane.Closing() {
		return
	}
	if room := t.room(); room.bytes < t.starvedOf || !room.suffices(&t.evicted, t.wantedBlock(now)) {
		return
	}
	t.feed()
	t.refetch(now)
	t.arm()
}

// room returns how much the tier may fetch again.
func (t *Tier) room() room { return t.env.Budget.room(t, t.inMemoryBytes) }

// refetchLoop fetches evicted records until none is due soon, or there is no room for more.
func (t *Tier) refetchLoop() {
	fits := true // something of the last block found room
	for {
		p, ok := t.nextPass(fits)
		if !ok {
			return
		}
		if t.failures > 2 { // only this block may be broken: let the others go first
			p.due = max(p.due, time.Now().Add(refetchTimeout).UnixMilli())
		}
		var err error
		fits, err = t.refetchBlock(p)
		if fits || err == nil {
			t.failures = 0
		}
		if errors.Is(err, errCrowded) {
			fits = true
			continue
		}
		if err != nil {
			again := t.failures > 0 && t.failedBlock == p.block
			t.failures, t.failedBlock = t.failures+1, p.block
			fits = true // the block failed, but not for lack of room
			if !t.refetchFailed(err, again) {
				return
			}
		}
	}
}

// nextPass chooses what to fetch. If there is no room, or nothing of the last block found any (fits
// is false), it evicts the tier's records that are due later. If that is not enough the tier waits
// for room. ok is false if there is nothing to fetch now.
func (t *Tier) nextPass(fits bool) (p *pass, ok bool) {
	t.lane.Lock()
	defer t.lane.Unlock()
	t.refetching = false
	now := time.Now().UnixMilli()
	if t.lane.Closing() {
		return nil, false
	}
	if t.evicted.due() > now+soon {
		t.arm()
		t.env.Budget.poke() // the tier's paused fetch may go on: no evicted record is due soon
		return nil, false
	}
	first := *t.evicted.first() // a copy: blocks move when more records are evicted
	room := t.room()
	if !fits || !room.suffices(&t.evicted, t.wantedBlock(now)) {
		freed := t.evict(now+t.cfg.reach(), t.wantedBlock(now)+room.over)
		room = t.room()
		fits = fits || freed > 0
	}
	if !t.isNext(first.due) && (!fits || !room.suffices(&t.evicted, t.wantedBlock(now))) {
		t.starved = true
		t.env.Budget.waitForRoom(t, room.freed)
		return nil, false
	}
	t.refetching, t.starvedOf = true, 0
	p = &pass{block: first.base, only: t.evicted.fitting(first.base, room.bytes, now+t.cfg.reach())}
	// A pass reads the whole block, however little room there is, unless it knows what fits.
	whole := min(int64(first.n)*t.evicted.each(), maxRefetch)
	p.want = max(min(t.wantedBlock(now), room.bytes), whole, 1)
	p.due = t.evicted.visit(p.block)
	return p, true
}

// wantedBlock returns about how many bytes to fetch, beginning with the block that is due first.
func (t *Tier) wantedBlock(now int64) int64 {
	b := t.evicted.first()
	if b == nil {
		return 0
	}
	return max(min(t.evicted.run(b.base, now+soon), maxRefetch), 1)
}

// refetchFailed logs a failed fetch, and waits before the next try. again reports that the fetch
// before it failed too, of the same block. It returns false if the lane is gone meanwhile.
func (t *Tier) refetchFailed(err error, again bool) bool {
	most := maxRefetchWait
	if again {
		most = maxBlockWait
	}
	wait := backoff.Of(t.failures, 100*time.Millisecond, most)
	t.env.Throttle.Once("refetch "+t.cfg.Topic, time.Minute, func() {
		t.cfg.Log.Warn("siding: could not fetch parked records again, will retry", "retry_topic", t.cfg.Topic, "wait", wait, "error", err)
	})
	if errors.Is(err, ErrOutOfLog) {
		t.lane.OutOfLog()
	}
	return backoff.Wait(t.lane.Context(), wait)
}

// refetchBlock makes a pass that nextPass began. It parks the block's records and other evicted
// ones in the answers. any reports whether a record left the index.
func (t *Tier) refetchBlock(pass *pass) (any bool, err error) {
	left := int64(math.MaxInt64) // the earliest due time of the records that stay evicted
	defer func() {
		if err != nil {
			left = pass.due // the pass did not see the whole block
		}
		t.lane.Lock()
		defer t.lane.Unlock()
		t.evicted.leave(pass.block, left, err == nil)
	}()
	for at := pass.block; ; {
		t.lane.Lock()
		from, want, ok := pass.next(&t.evicted, at)
		p := Partition{t.cfg.Topic, t.id, t.cfg.Partition}
		t.lane.Unlock()
		if !ok {
			return any, nil
		}
		got, next, err := t.env.Fetch(t.lane.Context(), p, from, want)
		if err != nil {
			return any, fmt.Errorf("fetch of %s/%d at %d: %w", p.Topic, p.Partition, from, err)
		}
		t.env.Budget.refetchedBytes.Add(sizeOf(got))
		t.lane.Lock()
		if t.lane.Closing() {
			t.lane.Unlock()
			return any, nil
		}
		before := t.evicted.n
		due, lost := t.restore(got, from, next, pass.block+evictedBits)
		left = min(left, due)
		any = any || t.evicted.n < before
		t.Promote()
		t.lane.Unlock()
		if lost > 0 {
			t.env.Expired(p.Topic, p.Partition, lost)
		}
		at = next
	}
}

func sizeOf(records []*kgo.Record) (size int64) {
	for _, r := range records {
		size += packedSize(packedLen(r))
	}
	return size
}

// candidate is a record that was fetched again.
type candidate struct {
	rec       *kgo.Record
	due, size int64
}

// restore parks the evicted records among got, which is what the log has of the offsets from up to
// next. The records that are due first go first, as long as there is room. Once a record that is
// due soon found none, only such records are kept. due is the earliest due time of the records
// below end that stay evicted. lost is how many the log no longer has.
func (t *Tier) restore(got []*kgo.Record, from, next, end int64) (due, lost int64) {
	var found []candidate
	now := time.Now()
	for at, ok := t.evicted.next(from); ok && at < next; at, ok = t.evicted.next(at + 1) {
		for len(got) > 0 && got[0].Offset < at {
			got = got[1:]
		}
		if len(got) == 0 || got[0].Offset > at {
			t.evicted.remove(at, t.evicted.each())
			t.tracker.Finish(at)
			lost++
			continue
		}
		found = append(found, candidate{got[0], t.dueOf(got[0], t.readAt(at, now), now), packedSize(packedLen(got[0]))})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.rec.Offset, b.rec.Offset))
	})
	room := t.room()
	early := now.UnixMilli() + t.cfg.reach()
	room.bytes += t.evictFor(found, room.bytes, early)
	due = math.MaxInt64
	for _, r := range found {
		if r.size <= room.bytes && (r.due <= early || t.starvedOf == 0) || t.isNext(r.due) {
			room.bytes -= r.size
			t.evicted.remove(r.rec.Offset, r.size)
			t.keep(pack(r.rec, r.due))
			continue
		}
		if r.due <= early && (t.starvedOf == 0 || r.size < t.starvedOf) {
			t.starvedOf = r.size
		}
		t.evicted.seen.set(r.rec.Offset, r.due, r.size)
		if r.rec.Offset < end {
			due = min(due, r.due)
		}
	}
	return due, lost
}

// evictFor makes room for the found records that are due soon: it evicts parked records of the tier
// that are due after them. So the tier always holds those of its records that are due first.
// Otherwise each found record would need a pass over its block when it is the tier's next one.
// found is sorted by due time. evictFor returns the bytes that it freed.
func (t *Tier) evictFor(found []candidate, room, early int64) (freed int64) {
	sorted, n, want, cutoff := false, len(t.parked), int64(0), int64(0)
	var taken int64
	for _, r := range found {
		if taken += r.size; r.due > early {
			break
		}
		if taken <= room {
			continue
		}
		if !sorted {
			sorted = true
			t.parked.sort()
		}
		i, gone := n, want
		for ; room+gone < taken && i > 0 && t.parked[i-1].due > r.due; i-- {
			gone += t.parked[i-1].size()
		}
		if room+gone < taken {
			break
		}
		n, want = i, gone
		if n < len(t.parked) {
			cutoff = t.parked[n].due
		}
	}
	return t.evict(cutoff, want)
}
