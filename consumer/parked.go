package consumer

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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

// keep takes a record of a tier into the budget; the caller holds the lock.
func (f *feed) keep(it *item) {
	f.kept++
	f.keptBytes += it.size
	f.lane.c.parking.take(it.size)
}

// park keeps a record until it is due; the caller holds the lock.
func (f *feed) park(it *item) {
	f.parked.push(it)
	if f.parked[0] == it {
		f.arm()
	}
}

// maxNap bounds how long a timer sleeps: it runs on the monotonic clock, and due times are wall-clock times, which may
// be stepped.
const maxNap = time.Minute

// arm sets the timer for the head of the heap; the caller holds the lock.
func (f *feed) arm() {
	if len(f.parked) == 0 {
		return
	}
	nap := min(time.Until(time.UnixMilli(f.parked[0].due)), maxNap)
	if f.timer == nil {
		f.timer = time.AfterFunc(nap, f.wakeDue)
		return
	}
	f.timer.Reset(nap)
}

// wakeDue makes the records ready that are due. It reads the clock once, and by that reading none is early.
func (f *feed) wakeDue() {
	l := f.lane
	l.mu.Lock()
	if l.state >= laneDraining {
		l.mu.Unlock()
		return
	}
	now := time.Now().UnixMilli()
	for len(f.parked) > 0 && f.parked[0].due <= now {
		l.enqueue(f, f.parked.pop())
	}
	f.arm()
	l.wakeLocked()
	l.mu.Unlock()
}

// dropParked lets go of the heap; the caller holds the lock.
func (f *feed) dropParked() {
	if f.timer != nil {
		f.timer.Stop()
	}
	f.parked = nil
	f.lane.c.parking.give(f.keptBytes)
	f.kept, f.keptBytes = 0, 0
	f.lane.c.parking.open(f)
}

// parking is the budget of bytes for parked records, one for the process. Over it the tiers' fetches pause; each tier
// always has room for one record, so that a long tier cannot starve a short one.
type parking struct {
	limit int64
	gate  *gate

	mu    sync.Mutex
	bytes int64
	shut  map[*feed]struct{} // paused for lack of room
}

func (p *parking) take(n int64) {
	p.mu.Lock()
	p.bytes += n
	p.mu.Unlock()
}

// full reports whether the feed, which holds at least one record, must pause, and remembers it. The caller has the gate
// look at it.
func (p *parking) full(f *feed) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes < p.limit {
		return false
	}
	p.shut[f] = struct{}{}
	f.full.Store(true)
	return true
}

// give returns bytes, and lets the paused fetches go on when a quarter of the budget is free.
func (p *parking) give(n int64) {
	p.mu.Lock()
	p.bytes -= n
	if p.bytes > p.limit/4*3 || len(p.shut) == 0 {
		p.mu.Unlock()
		return
	}
	open := make([]*feed, 0, len(p.shut))
	for f := range p.shut {
		f.full.Store(false)
		open = append(open, f)
	}
	clear(p.shut)
	p.mu.Unlock()
	p.gate.sync(open...)
}

// open lets the fetch of a feed that holds nothing go on, whatever the others hold.
func (p *parking) open(f *feed) {
	p.mu.Lock()
	_, shut := p.shut[f]
	delete(p.shut, f)
	if shut {
		f.full.Store(false)
	}
	p.mu.Unlock()
	if shut {
		p.gate.sync(f)
	}
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
			out.Headers[i] = kgo.RecordHeader{Key: h.Key, Value: keep(h.Value)}
		}
	}
	return out
}
