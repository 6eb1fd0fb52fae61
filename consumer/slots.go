package consumer

import (
	"sync"
	"sync/atomic"
)

// slots hands workers to lanes. Lanes with work stand in a ring and are served in turn; at most limit workers run at a
// time (0: as many as there is work for).
//
// Workers are goroutines that live as long as there is work, so an idle lane costs nothing.
type slots struct {
	limit int
	wg    *sync.WaitGroup
	run   func(*unit)
	clock *clock

	mu      sync.Mutex
	ring    fifo[*lane]
	queued  map[*lane]bool
	running int
	waiting atomic.Bool
}

// ready puts the lane into the ring, unless it stands there, and starts a worker if there is room for one.
func (s *slots) ready(l *lane) {
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

// contended reports whether a lane waits for a worker that there is no room for: then a unit ends early.
func (s *slots) contended() bool { return s.waiting.Load() }

func (s *slots) enqueue(l *lane) {
	if !s.queued[l] {
		s.queued[l] = true
		s.ring.push(l)
	}
}

func (s *slots) worker() {
	s.clock.enter()
	defer s.clock.leave()
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
	for {
		s.mu.Lock()
		if s.ring.len() == 0 {
			s.running--
			s.mu.Unlock()
			return
		}
		l := s.ring.pop()
		delete(s.queued, l)
		if s.ring.len() == 0 {
			s.waiting.Store(false)
		}
		s.mu.Unlock()

		var more bool
		if u, more = l.take(); more {
			s.ready(l) // there is work for another worker too
		}
		if u == nil {
			continue
		}
		s.run(u)
		more = l.release(u)
		u = nil
		if more {
			s.mu.Lock()
			s.enqueue(l) // this worker comes to it in turn
			s.mu.Unlock()
		}
	}
}
