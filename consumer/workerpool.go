package consumer

import (
	"sync"
	"sync/atomic"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/fifo"
)

// workerPool gives workers to lanes. Lanes with work are served in turn, from a ring: a worker
// stays with a lane until the coarse clock moves, so that the records of a batch run while they are
// in the CPU's caches. At most limit workers run at a time (0: as many as there is work for).
//
// Workers are goroutines that live as long as there is work, so an idle lane costs nothing. A
// worker that waits between two runs of a record lends its slot, and takes the next free slot when
// its wait is over. At most limit slots are lent, because no other bound counts the unit that such
// a worker holds. See DESIGN.md, "Attempts and workers".
type workerPool struct {
	limit int
	wg    *sync.WaitGroup
	run   func(*unit)
	clock *clock.Clock

	mu      sync.Mutex
	ring    fifo.Queue[*lane]
	running int
	lent    int
	// channels of workers whose wait is over, in order; closing one hands over a slot
	returning fifo.Queue[chan struct{}]
	waiting   atomic.Bool
}

// ready puts the lane into the ring, unless it is there, and starts a worker if the limit allows.
func (s *workerPool) ready(l *lane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(l)
	if s.limit > 0 && s.running >= s.limit {
		s.waiting.Store(true)
		return
	}
	s.running++
	s.wg.Go(s.worker)
}

// contended reports whether a lane waits for a worker beyond the limit. Units then end early.
func (s *workerPool) contended() bool { return s.waiting.Load() }

// lend lends a worker's slot to others, until reclaim or takeOver. If limit slots are lent already,
// it reports false and the worker keeps its slot.
func (s *workerPool) lend() bool {
	s.mu.Lock()
	spare := s.limit == 0 || s.lent < s.limit
	if spare {
		s.lent++
		s.running--
		s.startWorker()
	}
	s.mu.Unlock()
	if spare {
		s.clock.Leave()
	}
	return spare
}

// startWorker gives a free slot to a returning worker or to a new one; the caller holds the lock.
func (s *workerPool) startWorker() {
	switch {
	case s.limit > 0 && s.running >= s.limit:
	case s.returning.Len() > 0:
		s.running++
		s.lent--
		close(s.returning.Pop())
	case s.ring.Len() > 0:
		s.running++
		s.wg.Go(s.worker)
	}
}

// reclaim waits for a slot. It reports false, without a slot, if stop is closed first.
func (s *workerPool) reclaim(stop <-chan struct{}) bool {
	s.mu.Lock()
	if s.limit == 0 || s.running < s.limit {
		s.running++
		s.lent--
		s.mu.Unlock()
		s.clock.Enter()
		return true
	}
	turn := make(chan struct{})
	s.returning.Push(turn)
	s.waiting.Store(true)
	s.mu.Unlock()
	select {
	case <-turn:
		s.clock.Enter()
		return true
	case <-stop:
	}
	go func() { // startWorker will hand over a slot all the same
		<-turn
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent++ // takeOver has counted this worker already
		s.running--
		s.startWorker()
	}()
	return false
}

// takeOver counts a worker that runs no further handler and only has to end, even beyond the limit.
func (s *workerPool) takeOver() {
	s.clock.Enter()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent--
	s.running++
}

func (s *workerPool) enqueue(l *lane) {
	if !l.queued {
		l.queued = true
		s.ring.Push(l)
	}
}

func (s *workerPool) worker() {
	s.clock.Enter()
	defer s.clock.Leave()
	var u *unit
	defer func() {
		if u != nil {
			// The handler called runtime.Goexit, which ended this goroutine: another takes over.
			if l := u.feed.lane; l.release(u) {
				s.mu.Lock()
				s.enqueue(l)
				s.mu.Unlock()
			}
			s.wg.Go(s.worker)
		}
	}()
	last, since := (*lane)(nil), int64(0) // the lane of the last unit, if it has more work
	for {
		l, now := last, s.clock.Reading.Load()
		if l == nil || now != since {
			if l = s.next(last); l == nil {
				return
			}
			since = now
		}
		last = nil
		var more bool
		if u, more = l.take(); more {
			s.ready(l) // there is work for another worker
		}
		if u == nil {
			continue
		}
		s.run(u)
		if l.release(u) {
			last = l
		}
		u = nil
	}
}

// next returns the lane whose turn it is, after it has put more, if not nil, at the end of the
// ring. It returns nil, and frees the worker's slot, if no lane has work or another worker has a
// claim to the slot.
func (s *workerPool) next(more *lane) *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more != nil {
		s.enqueue(more)
	}
	if s.ring.Len() == 0 || s.returning.Len() > 0 || s.limit > 0 && s.running > s.limit {
		s.running--
		s.startWorker()
		return nil
	}
	l := s.ring.Pop()
	l.queued = false
	if s.ring.Len() == 0 {
		s.waiting.Store(false)
	}
	return l
}
