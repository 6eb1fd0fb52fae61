package consumer

import (
	"time"
)

// forwards are a lane's copies on their way. The lane's lock guards them. They are bounded by MaxInFlight and by the lane's
// share of MaxInFlightBytes, so that one lane without a leader cannot fill the producer. A lane that reached a bound waits
// until half of it is free: else it would stop and go at every acknowledgement.
// See DESIGN.md, "Copies".
type forwards struct {
	outstanding  int
	bytes        int64
	full         bool
	acknowledged int                      // acknowledged since the lane was assigned, as far as it matters
	refused      int                      // of the outstanding ones, those that were refused at least once, other than to be sent alone
	waiting      map[*forward]*time.Timer // of the outstanding ones, those that kgo has not: until their next try, or (nil) their turn alone
	trouble      string                   // why the last one was refused
	progress     time.Time                // of the last acknowledgement, or of the first copy after a quiet time
	omitted      int                      // dead letters that were written without their value
}

// room reports whether a record may run whose failure would send another copy. One refused copy holds up its lane: the
// next records would most likely join it.
func (s *forwards) room() bool { return s.refused == 0 && !s.full }

// firstCopies is how many copies a new lane has on their way before the first is acknowledged. Each acknowledgement doubles it, up to
// the bound: so where copies can't be written, a lane that comes from another owner runs no further than that before it knows.
const firstCopies = 8

// setBounds notes whether the copies are at their bounds.
func (s *forwards) setBounds(count int, bytes int64) {
	count = min(count, firstCopies<<s.acknowledged)
	if s.full {
		count, bytes = count/2, bytes/2
	}
	s.full = s.outstanding > 0 && (s.outstanding >= count || s.bytes >= bytes)
}

// cancelRetries stops the tries that are still to come: the records stay uncommitted, and the next owner tries.
func (s *forwards) cancelRetries() {
	for fw, t := range s.waiting {
		if t != nil {
			t.Stop()
		}
		s.done(fw)
	}
	s.waiting = nil
}

// wait notes a copy that kgo has not.
func (s *forwards) wait(fw *forward, t *time.Timer) {
	if s.waiting == nil {
		s.waiting = map[*forward]*time.Timer{}
	}
	s.waiting[fw] = t
}

// done takes a copy off the books.
func (s *forwards) done(fw *forward) {
	s.outstanding--
	s.bytes -= fw.size
	if fw.tries > 0 {
		s.refused--
	}
}
