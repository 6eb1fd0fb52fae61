package consumer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dueHeap holds the records of a tier that are not due yet, the next one on top.
type dueHeap []packedRecord

func (h dueHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}

func (h *dueHeap) push(p packedRecord) {
	*h = append(*h, p)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *dueHeap) pop() packedRecord {
	s := *h
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], packedRecord{}
	s = s[:n]
	*h = s
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < n && s.less(down, least) {
				least = down
			}
		}
		if least == i {
			return top
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
}

// maxPromoted bounds the records of a feed that are due and ready for a worker. More of them stay in the heap, from which they can give
// up their bytes.
const maxPromoted = 256

// dueCount is how many of the feed's records are due and wait for a worker, or for their key.
func (f *feed) dueCount() int { return f.inMemory - len(f.parked) }

// mayPromote reports whether there is room among the ready ones. Those that wait for their key have the bound of a lane's records, so that
// a busy key does not hold up the others.
func (f *feed) mayPromote() bool {
	return f.ready.len() < maxPromoted && f.dueCount() < f.lane.c.cfg.MaxInFlight
}

// admit keeps a copy of a record that was just read, or only notes when it is due; the caller holds the lock. What is sooner than
// all that the feed holds is its next one, for which there is always room.
func (f *feed) admit(r *kgo.Record, due int64) (kept bool) {
	if size := packedSize(packedLen(r)); !f.isNext(due) && !f.lane.c.tierBudget.admits(due, size) {
		f.evicted.add(r.Offset, due, size)
		f.lane.c.tierBudget.evictedBytes.Add(size)
		return false
	}
	f.keep(pack(r, due))
	return true
}

// isNext reports whether a record due at that time would be the feed's next one.
func (f *feed) isNext(due int64) bool {
	return f.dueCount() == 0 && (len(f.parked) == 0 || due < f.parked[0].due)
}

// keep takes a record into the heap and the budget; the caller holds the lock.
func (f *feed) keep(p packedRecord) {
	f.lane.c.tierBudget.take(p.size(), f.inMemory == 0)
	f.inMemory++
	f.inMemoryBytes += p.size()
	f.parked.push(p)
}

// earliestDue takes the first record out of the heap. It stays packed for as long as it waits: unpacked it is larger, by its headers
// many times, and what waits is what was admitted by its packed size. The caller holds the lock.
func (f *feed) nextDue() *item {
	p := f.parked.pop()
	return &item{packed: &p, size: p.size()}
}

// unpack unpacks an item that a worker has. From then on it counts with all its memory, until the budget has it back in release.
func (f *feed) unpack(it *item) {
	if it.rec != nil {
		return
	}
	it.rec, it.packed = it.packed.unpack(f), nil
	more := unpackedSize(it.rec)
	f.lane.c.tierBudget.take(more, false)
	it.size += more
}

// release takes records off the feed's books; the caller holds the lock. Their bytes the budget has back when they are no longer used.
func (f *feed) release(n int, bytes int64) {
	if n == 0 {
		return
	}
	f.inMemory -= n
	f.inMemoryBytes -= bytes
	if f.inMemory == 0 {
		f.lane.c.tierBudget.emptied()
	}
}

// evict has the records that are due last give up their bytes: as many as it takes, of those due at cutoff or later, but not the feed's
// next one, which would be fetched again at once. The caller holds the lock.
func (f *feed) evict(cutoff, want int64) (freed int64) {
	if f.lane.state >= laneDraining || f.retired.Load() || !slices.ContainsFunc(f.parked, func(p packedRecord) bool { return p.due >= cutoff }) {
		return 0
	}
	f.sortParked()
	n, least := len(f.parked), 0
	if f.dueCount() == 0 {
		least = 1
	}
	for n > least && freed < want && f.parked[n-1].due >= cutoff {
		n--
		p := &f.parked[n]
		f.evicted.add(p.offset, p.due, p.size())
		freed += p.size()
		*p = packedRecord{}
	}
	gone := len(f.parked) - n
	if gone == 0 {
		return 0 // nobody has more room by that
	}
	f.parked = f.parked[:n]
	f.release(gone, freed)
	f.lane.c.tierBudget.giveBack(freed)
	f.lane.c.tierBudget.evictedBytes.Add(freed)
	f.arm()
	return freed
}

// sortParked brings the heap in order; what is sorted is a heap too.
func (f *feed) sortParked() {
	slices.SortFunc(f.parked, func(a, b packedRecord) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset)) })
}

// earliestDue is when the first record of those that wait is due, MaxInt64 where none does.
func (f *feed) earliestDue() int64 {
	due := f.evicted.due()
	if len(f.parked) > 0 {
		due = min(due, f.parked[0].due)
	}
	return due
}

// maxTimer bounds how long a timer sleeps: it runs on the monotonic clock, and due times are wall-clock times, which may
// be stepped.
const maxTimer = time.Minute

// arm sets the timer for what comes next: a record that is due, or some that have to be fetched again. The caller holds the lock.
func (f *feed) arm() {
	next := int64(math.MaxInt64)
	if len(f.parked) > 0 && f.mayPromote() {
		next = f.parked[0].due
	}
	if f.evicted.n > 0 && f.mayFetch() {
		next = min(next, f.evicted.due()-soon)
	}
	if next == math.MaxInt64 {
		return
	}
	nap := min(time.Until(time.UnixMilli(next)), maxTimer)
	if f.timer == nil {
		f.timer = time.AfterFunc(nap, f.wakeDue)
		return
	}
	f.timer.Reset(nap)
}

// wakeDue is what the timer calls.
func (f *feed) wakeDue() {
	f.lane.mu.Lock()
	defer f.lane.mu.Unlock()
	f.promote()
}

// promote makes the records ready that are due, has those fetched again that soon are, and sets the timer; the caller holds the lock. It
// reads the clock once, and by that reading none is early.
func (f *feed) promote() {
	l := f.lane
	if l.state >= laneDraining {
		return
	}
	now := time.Now().UnixMilli()
	for len(f.parked) > 0 && f.parked[0].due <= now && f.mayPromote() {
		l.enqueue(f, f.nextDue())
	}
	f.refetch(now)
	f.arm()
	l.wakeLocked()
}

// dropParked lets go of the heap and the index; the caller holds the lock.
func (f *feed) dropParked() {
	if f.timer != nil {
		f.timer.Stop()
	}
	f.parked, f.evicted, f.starved = nil, evictedIndex{}, false
	f.lane.c.tierBudget.giveBack(f.inMemoryBytes)
	f.release(f.inMemory, f.inMemoryBytes)
	f.lane.c.tierBudget.remove(f)
}
