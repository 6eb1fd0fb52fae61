package forward

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
)

// refuse schedules the next try of a copy. The caller holds the lock.
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

// retryWait returns how long a copy waits after its refusal number tries.
func retryWait(tries int32) time.Duration {
	return backoff.Of(int(tries), refreshAhead, 15*time.Second)
}

// scheduleRetry tries a copy again after wait. It makes the copy's client ready for that
// refreshAhead before. The caller holds the lock.
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

// wait adds a copy to those that wait, with the timer of its next try, if any. The caller holds the
// lock.
func (s *Copies) wait(c *Copy, t *time.Timer) {
	if s.waiting == nil {
		s.waiting = map[*Copy]*time.Timer{}
	}
	s.waiting[c] = t
}

// retry sends a refused copy again, unless its lane abandoned it.
func (s *Copies) retry(c *Copy) {
	if c.effort > batched {
		s.Clients.single.send(c)
	} else if s.takesTurn(c) {
		s.produce(c.nextRecord(), c)
	}
}

// takesTurn ends the wait of a copy, and reports whether its lane still wants it sent.
func (s *Copies) takesTurn(c *Copy) bool {
	s.Lane.Lock()
	defer s.Lane.Unlock()
	_, still := s.waiting[c]
	delete(s.waiting, c)
	return still
}
