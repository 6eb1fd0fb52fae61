package consumer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// parkedHeap holds the records of a tier that are not due yet, the next one on top.
type parkedHeap []parcel

func (h parkedHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].offset < h[j].offset
}

func (h *parkedHeap) push(p parcel) {
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

func (h *parkedHeap) pop() parcel {
	s := *h
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], parcel{}
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

// maxRipe bounds the records of a feed that are due and ready for a worker. More of them stay in the heap, from which they can give
// up their bytes.
const maxRipe = 256

// ripe is how many of the feed's records are due and wait for a worker, or for their key.
func (f *feed) ripe() int { return f.kept - len(f.parked) }

// mayRipen reports whether there is room among the ready ones. Those that wait for their key have the bound of a lane's records, so that
// a busy key does not hold up the others.
func (f *feed) mayRipen() bool {
	return f.ready.len() < maxRipe && f.ripe() < f.lane.c.cfg.MaxInFlight
}

// admit keeps a copy of a record that was just read, or only notes when it is due; the caller holds the lock. What is sooner than
// all that the feed holds is its next one, for which there is always room.
func (f *feed) admit(r *kgo.Record, due int64) (kept bool) {
	if size := parcelSize(packedLen(r)); !f.isNext(due) && !f.lane.c.parking.admits(due, size) {
		f.away.add(r.Offset, due, size)
		f.lane.c.parking.released.Add(size)
		return false
	}
	f.keep(pack(r, due))
	return true
}

// isNext reports whether a record due at that time would be the feed's next one.
func (f *feed) isNext(due int64) bool {
	return f.ripe() == 0 && (len(f.parked) == 0 || due < f.parked[0].due)
}

// keep takes a record into the heap and the budget; the caller holds the lock.
func (f *feed) keep(p parcel) {
	f.lane.c.parking.take(p.size(), f.kept == 0)
	f.kept++
	f.keptBytes += p.size()
	f.parked.push(p)
}

// nextRipe takes the first record out of the heap. It stays packed for as long as it waits: unpacked it is larger, by its headers
// many times, and what waits is what was admitted by its packed size. The caller holds the lock.
func (f *feed) nextRipe() *item {
	p := f.parked.pop()
	return &item{parcel: &p, size: p.size()}
}

// unwrap unpacks an item that a worker has. From then on it counts with all its memory, until the budget has it back in release.
func (f *feed) unwrap(it *item) {
	if it.rec != nil {
		return
	}
	it.rec, it.parcel = it.parcel.unpack(f), nil
	more := unpackedSize(it.rec)
	f.lane.c.parking.take(more, false)
	it.size += more
}

// unkeep takes records off the feed's books; the caller holds the lock. Their bytes the budget has back when they are no longer used.
func (f *feed) unkeep(n int, bytes int64) {
	if n == 0 {
		return
	}
	f.kept -= n
	f.keptBytes -= bytes
	if f.kept == 0 {
		f.lane.c.parking.left()
	}
}

// giveUp has the records that are due last give up their bytes: as many as it takes, of those due at cutoff or later, but not the feed's
// next one, which would be fetched again at once. The caller holds the lock.
func (f *feed) giveUp(cutoff, want int64) (freed int64) {
	if f.lane.state >= laneDraining || f.retired.Load() || !slices.ContainsFunc(f.parked, func(p parcel) bool { return p.due >= cutoff }) {
		return 0
	}
	f.sortParked()
	n, least := len(f.parked), 0
	if f.ripe() == 0 {
		least = 1
	}
	for n > least && freed < want && f.parked[n-1].due >= cutoff {
		n--
		p := &f.parked[n]
		f.away.add(p.offset, p.due, p.size())
		freed += p.size()
		*p = parcel{}
	}
	gone := len(f.parked) - n
	if gone == 0 {
		return 0 // nobody has more room by that
	}
	f.parked = f.parked[:n]
	f.unkeep(gone, freed)
	f.lane.c.parking.give(freed)
	f.lane.c.parking.released.Add(freed)
	f.arm()
	return freed
}

// sortParked brings the heap in order; what is sorted is a heap too.
func (f *feed) sortParked() {
	slices.SortFunc(f.parked, func(a, b parcel) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset)) })
}

// nextDue is when the first record of those that wait is due, MaxInt64 where none does.
func (f *feed) nextDue() int64 {
	due := f.away.due()
	if len(f.parked) > 0 {
		due = min(due, f.parked[0].due)
	}
	return due
}

// maxNap bounds how long a timer sleeps: it runs on the monotonic clock, and due times are wall-clock times, which may
// be stepped.
const maxNap = time.Minute

// arm sets the timer for what comes next: a record that is due, or some that have to be fetched again. The caller holds the lock.
func (f *feed) arm() {
	next := int64(math.MaxInt64)
	if len(f.parked) > 0 && f.mayRipen() {
		next = f.parked[0].due
	}
	if f.away.n > 0 && f.mayFetch() {
		next = min(next, f.away.due()-soon)
	}
	if next == math.MaxInt64 {
		return
	}
	nap := min(time.Until(time.UnixMilli(next)), maxNap)
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
	f.ripen()
}

// ripen makes the records ready that are due, has those fetched again that soon are, and sets the timer; the caller holds the lock. It
// reads the clock once, and by that reading none is early.
func (f *feed) ripen() {
	l := f.lane
	if l.state >= laneDraining {
		return
	}
	now := time.Now().UnixMilli()
	for len(f.parked) > 0 && f.parked[0].due <= now && f.mayRipen() {
		l.enqueue(f, f.nextRipe())
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
	f.parked, f.away, f.hungry = nil, awayIndex{}, false
	f.lane.c.parking.give(f.keptBytes)
	f.unkeep(f.kept, f.keptBytes)
	f.lane.c.parking.forget(f)
}
