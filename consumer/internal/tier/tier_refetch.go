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

// Evicted records are fetched again block by block, by requests of siding's own: a consuming client
// reads ahead, and what it reads beyond would be thrown away again.

// maxRefetch bounds a request, in bytes. Less is asked for if less is wanted.
const maxRefetch = 1 << 20

// mayFetch reports whether evicted records could be fetched again now.
func (t *Tier) mayFetch() bool { return !t.refetching && (!t.starved || t.isNext(t.evicted.due())) }

// refetch has evicted records fetched again that are due soon.
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

// retryRefetch is called for a starved tier when there may be room. It takes the lane's lock.
func (t *Tier) retryRefetch() {
	t.lane.Lock()
	defer t.lane.Unlock()
	now := time.Now().UnixMilli()
	if !t.starved || t.lane.Closing() {
		return
	}
	room := t.room()
	if room.bytes < t.starvedOf || !room.suffices(t.evicted.each(), t.wantedBlock(now)) {
		return
	}
	t.feed()
	t.refetch(now)
	t.arm()
}

// room is what the tier may fetch again.
func (t *Tier) room() room { return t.env.Budget.room(t.inMemoryBytes) }

// refetchLoop fetches evicted records until none is due soon, or there is no room for more.
func (t *Tier) refetchLoop() {
	fits := true // what was fetched last
	for failures := 0; ; {
		block, due, want, ok := t.nextBlock(fits)
		if !ok {
			return
		}
		if failures > 2 { // let the others have their turn, should only this one be broken
			due = max(due, time.Now().Add(refetchTimeout).UnixMilli())
		}
		var err error
		if fits, err = t.refetchBlock(block, due, want); errors.Is(err, errCrowded) {
			fits = true
			continue
		}
		if err != nil {
			failures++
			fits = true // it is not for lack of room
			if !t.refetchFailed(err, failures) {
				return
			}
			continue
		}
		failures = 0
	}
}

// nextBlock chooses what to fetch, and about how many bytes of it. Without room, or if nothing of
// the last block fitted, the tier's own records that are due later make some; else it waits. ok is
// false if nothing is to be fetched now.
func (t *Tier) nextBlock(fits bool) (block, due, want int64, ok bool) {
	t.lane.Lock()
	defer t.lane.Unlock()
	t.refetching = false
	now := time.Now().UnixMilli()
	if t.lane.Closing() {
		return 0, 0, 0, false
	}
	if t.evicted.due() > now+soon {
		t.arm()
		t.env.Budget.caughtUp(t)
		return 0, 0, 0, false
	}
	first := *t.evicted.first() // a copy: blocks move when more records are evicted
	want = t.wantedBlock(now)
	room := t.room()
	if !fits || !room.suffices(t.evicted.each(), want) {
		freed := t.evict(now+2*soon, want+room.over)
		room = t.room()
		fits = fits || freed > 0
	}
	if !t.isNext(first.due) && (!fits || !room.suffices(t.evicted.each(), want)) {
		t.starved = true
		t.env.Budget.waitForRoom(t, room.freed)
		return 0, 0, 0, false
	}
	t.refetching, t.starvedOf = true, 0
	block = first.base
	// A pass sees the whole block, however little room there is. Asked for in pieces, what comes
	// first would take the room of what is due first, which would then be fetched by a pass for
	// each record.
	whole := min(int64(first.n)*t.evicted.each(), maxRefetch)
	return block, t.evicted.visit(block), max(min(want, room.bytes), whole, 1), true
}

// wantedBlock is about how many bytes to fetch from the block on that is due first.
func (t *Tier) wantedBlock(now int64) int64 {
	b := t.evicted.first()
	if b == nil {
		return 0
	}
	return max(min(t.evicted.run(b.base, now+2*soon), maxRefetch), 1)
}

// refetchFailed waits before the next try. It reports false if the lane is gone meanwhile.
func (t *Tier) refetchFailed(err error, failures int) bool {
	wait := backoff.Of(failures, 100*time.Millisecond, 5*time.Second)
	t.env.Throttle.Once("refetch "+t.cfg.Topic, time.Minute, func() {
		t.cfg.Log.Warn("siding: parked records could not be fetched again, trying on", "retry_topic", t.cfg.Topic, "wait", wait, "error", err)
	})
	if errors.Is(err, ErrOutOfLog) {
		t.lane.OutOfLog()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.lane.Context().Done():
		return false
	}
}

// refetchBlock fetches a block, whose pass nextBlock began, and takes what else is wanted from the
// answers. due is when the block was due. It reports whether it took anything.
func (t *Tier) refetchBlock(block, due, want int64) (any bool, err error) {
	left := int64(math.MaxInt64) // when the first is due of what stays evicted
	defer func() {
		if err != nil {
			left = due // not all of it was seen
		}
		t.lane.Lock()
		defer t.lane.Unlock()
		t.evicted.leave(block, left)
	}()
	for at := block; ; {
		t.lane.Lock()
		from, ok := t.evicted.next(at)
		p := Partition{t.cfg.Topic, t.id, t.cfg.Partition}
		t.lane.Unlock()
		if !ok || from >= block+evictedBits {
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
		due, lost := t.restore(got, from, next, block+evictedBits)
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

// restore takes what was fetched again of the offsets from up to next: the soonest first, as long
// as there is room. It returns when the first is due of those below end that stay evicted, and how
// many the log has no more.
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
	early := now.UnixMilli() + 2*soon
	room.bytes += t.evictFor(found, room.bytes, early)
	due = math.MaxInt64
	for _, r := range found {
		if r.size <= room.bytes && (r.due <= early || r.size <= room.early) || t.isNext(r.due) {
			room.bytes -= r.size
			room.early -= r.size
			t.evicted.remove(r.rec.Offset, r.size)
			t.keep(pack(r.rec, r.due))
			continue
		}
		if r.due <= early {
			room.early = 0 // what is left is for those that are due soon
			if t.starvedOf == 0 || r.size < t.starvedOf {
				t.starvedOf = r.size
			}
		}
		if r.rec.Offset < end {
			due = min(due, r.due)
		}
	}
	return due, lost
}

// evictFor evicts records of the tier for those found that are due soon and before them, and have
// no room. So the tier holds the first of the records that it has seen. Else each of the others
// would be fetched by a pass over its block when it is the tier's next one. What was found comes in
// order.
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
