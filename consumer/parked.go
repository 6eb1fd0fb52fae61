package consumer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// parkedHeap holds the records of a tier that are not due yet, the next one on top.
type parkedHeap []*item

func (h parkedHeap) less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].rec.Offset < h[j].rec.Offset
}

func (h *parkedHeap) push(it *item) {
	*h = append(*h, it)
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

func (h *parkedHeap) pop() *item {
	s := *h
	top, n := s[0], len(s)-1
	s[0], s[n] = s[n], nil
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

// maxRipe bounds the records of a feed that are due and wait for a worker. More of them stay in the heap, from which they can give
// up their bytes: so what a slow handler has before it stays within the budget.
const maxRipe = 256

// ripe is how many of the feed's records are due and wait for a worker.
func (f *feed) ripe() int { return f.kept - len(f.parked) }

// admit keeps a copy of a record that was just read, or only notes when it is due; the caller holds the lock. What is sooner than
// all that the feed holds is its next one, for which there is always room.
func (f *feed) admit(r *kgo.Record, due int64) (kept bool) {
	p, size := f.lane.c.parking, recordSize(r)
	if !f.isNext(due) && !p.admits(due, size) {
		f.away.add(r.Offset, due, size)
		p.released.Add(size)
		return false
	}
	f.keep(r, due, size)
	return true
}

// isNext reports whether a record due at that time would be the feed's next one.
func (f *feed) isNext(due int64) bool {
	return f.ripe() == 0 && (len(f.parked) == 0 || due < f.parked[0].due)
}

// keep takes a copy of a record into the heap and the budget; the caller holds the lock.
func (f *feed) keep(r *kgo.Record, due, size int64) {
	f.lane.c.parking.take(size, f.kept == 0)
	f.kept++
	f.keptBytes += size
	f.parked.push(&item{rec: deepCopy(r), due: due, size: size})
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
	if len(f.parked) == 0 || f.lane.state >= laneDraining || f.retired.Load() {
		return 0
	}
	// What is sorted is a heap too.
	slices.SortFunc(f.parked, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.rec.Offset, b.rec.Offset))
	})
	n, least := len(f.parked), 0
	if f.ripe() == 0 {
		least = 1
	}
	for n > least && freed < want && f.parked[n-1].due >= cutoff {
		n--
		it := f.parked[n]
		f.parked[n] = nil
		f.away.add(it.rec.Offset, it.due, it.size)
		freed += it.size
	}
	gone := len(f.parked) - n
	f.parked = f.parked[:n]
	f.unkeep(gone, freed)
	f.lane.c.parking.give(freed)
	f.lane.c.parking.released.Add(freed)
	f.arm()
	return freed
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
	if len(f.parked) > 0 && f.ripe() < maxRipe {
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
	for len(f.parked) > 0 && f.parked[0].due <= now && f.ripe() < maxRipe {
		l.enqueue(f, f.parked.pop())
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

// deepCopy copies a fetched record, of which a single one would keep the whole fetch in memory.
func deepCopy(r *kgo.Record) *kgo.Record {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Value)
	}
	room := make([]byte, 0, n)
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		at := len(room)
		room = append(room, b...)
		return room[at:len(room):len(room)]
	}
	out := &kgo.Record{
		Key: keep(r.Key), Value: keep(r.Value), Timestamp: r.Timestamp, Topic: r.Topic, Partition: r.Partition,
		Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Context: r.Context,
	}
	if len(r.Headers) > 0 {
		out.Headers = make([]kgo.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			out.Headers[i] = kgo.RecordHeader{Key: headers.Canonical(h.Key), Value: keep(h.Value)}
		}
	}
	return out
}
