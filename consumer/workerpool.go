package consumer

import (
	"sync"
	"sync/atomic"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/fifo"
)

// workerPool hands workers to lanes. Lanes with work stand in a ring and are served in turn; at
// most limit workers run at a time (0: as many as there is work for).
//
// Workers are goroutines that live as long as there is work, so an idle lane costs nothing. One
// that waits between two runs of a record lends its slot, and has the next one that is free when
// its wait is over. At most limit slots are lent: what a worker has in hand counts towards no other
// bound. See DESIGN.md, "Attempts and workers".
type workerPool struct {
	limit int
	wg    *sync.WaitGroup
	run   func(*unit)
	clock *clock.Clock

	mu      sync.Mutex
	ring    fifo.Queue[*lane]
	running int
	lent    int
	// workers whose wait is over, in order; closed to hand over a slot
	returning fifo.Queue[chan struct{}]
	waiting   atomic.Bool
}

// ready puts the lane into the ring, unless it stands there, and starts a worker if there is room
// for one.
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

// contended reports whether a lane waits for a worker that there is no room for: then a unit ends
// early.
func (s *workerPool) contended() bool { return s.waiting.Load() }

// lend gives a worker's slot to the others, until it reclaims one. It reports false, and the worker
// keeps its slot, where as many are lent as there are.
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

// startWorker starts a worker for the slot that is free, where somebody waits for one; the caller
// holds the lock.
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

// reclaim waits for a slot. It reports false, and there is none, where stop was closed before.
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
	go func() { // whoever hands the slot over does not know
		<-turn
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent++ // takeOver has it
		s.running--
		s.startWorker()
	}()
	return false
}

// takeOver counts a worker that runs no handler any more, only comes to its end, beyond the limit
// if need be.
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
			// The handler ended the goroutine with runtime.Goexit: another one takes over.
			if l := u.feed.lane; l.release(u) {
				s.mu.Lock()
				s.enqueue(l)
				s.mu.Unlock()
			}
			s.wg.Go(s.worker)
		}
	}()
	var last *lane // of which the worker had a unit, and which has more
	for {
		l := s.next(last)
		if l == nil {
			return
		}
		last = nil
		var more bool
		if u, more = l.take(); more {
			s.ready(l) // there is work for another worker too
		}
		if u == nil {
			continue
		}
		s.run(u)
		if l.release(u) {
			last = l // this worker comes to it in turn
		}
		u = nil
	}
}

// next is the lane whose turn it is, with one that has more work behind the others. It gives up the
// worker's slot where there is none, or others have a claim to the slot.
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
