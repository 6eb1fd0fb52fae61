package forward

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// refuse plans the next try of a copy; the caller holds the lock.
func (s *Copies) refuse(c *Copy, why string, err error) Outcome {
	if c.tries++; c.tries == 1 {
		s.refused++
	}
	s.trouble = why
	c.via.refused(c.rec.Topic, err)
	s.scheduleRetry(c, retryWait(c.tries))
	s.Lane.Changed()
	return refused
}

// retryWait is how long a copy waits that was refused so many times.
func retryWait(tries int32) time.Duration {
	return backoff.Of(int(tries), refreshAhead, 15*time.Second)
}

// scheduleRetry has a copy tried again after a while, and its client made ready for that a moment
// before; the caller holds the lock.
func (s *Copies) scheduleRetry(c *Copy, wait time.Duration) {
	s.wait(c, time.AfterFunc(wait-refreshAhead, func() {
		c.producers().makeReady(s.Clients.ctx, c.rec.Topic)
		s.Lane.Lock()
		defer s.Lane.Unlock()
		if _, still := s.waiting[c]; still {
			s.wait(c, time.AfterFunc(refreshAhead, func() { s.retry(c) }))
		}
	}))
}

// wait notes a copy that kgo has not; the caller holds the lock.
func (s *Copies) wait(c *Copy, t *time.Timer) {
	if s.waiting == nil {
		s.waiting = map[*Copy]*time.Timer{}
	}
	s.waiting[c] = t
}

// retry sends a refused copy again, unless its lane gave it up.
func (s *Copies) retry(c *Copy) {
	if c.alone {
		s.Clients.single.send(c)
	} else if s.takesTurn(c) {
		s.produce(c.nextRecord(), c)
	}
}

// takesTurn reports whether the lane still wants a copy sent that waited.
func (s *Copies) takesTurn(c *Copy) bool {
	s.Lane.Lock()
	defer s.Lane.Unlock()
	_, still := s.waiting[c]
	delete(s.waiting, c)
	return still
}
