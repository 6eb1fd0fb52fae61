package consumer

import (
	"math"
	"time"
)

// rest is what a tier's fetch does in a storm. What fails by the hundred thousand is written to the tier by this very lane, which
// therefore knows that none of it is due before the tier's delay is over; to read it back at once would take from the writing what
// it needs. So while copies come in fast the fetch rests: until they have stopped for a moment, or for half of the delay, so that
// there is time to read them. What others write to the tier meanwhile (redrive, say) is read that much later.
type rest struct {
	on        bool
	wroteTo   int64 // offset behind the last copy that is safe
	wroteAt   int64 // Unix milliseconds
	behind    int64 // since when there are copies that were not read, Unix milliseconds; 0: there are none
	forbidden bool  // until all is read: a copy is due before the tier's delay is over
}

const (
	stormOf  = 4096             // copies that were not read, from which on it is one
	stormGap = 250              // milliseconds without a copy, after which it is over
	maxRest  = 10 * time.Second // however long the delay
)

// wrote notes a copy that is safe; the caller holds the lock.
func (l *lane) wrote(fw *forward) {
	for _, f := range l.tiers() {
		if f.topic == fw.rec.Topic {
			f.wrote(fw)
			return
		}
	}
}

func (f *feed) wrote(fw *forward) {
	now, s := f.lane.forwards.progress.UnixMilli(), &f.rest
	s.wroteAt = now
	if fw.landed < f.tracker.next || f.inherited {
		return
	}
	s.wroteTo = max(s.wroteTo, fw.landed+1)
	if s.behind == 0 {
		s.behind = now
		s.forbidden = fw.landed-f.tracker.next >= stormOf // what lies between is not this lane's, and may be due
	}
	if fw.due.UnixMilli() < now+f.delay.Milliseconds()/2 {
		s.forbidden = true
	}
	f.endRest(now)
	if !s.on && s.wroteTo-f.tracker.next >= stormOf && !f.rested(now) && !f.full.Load() {
		s.on = true
		f.full.Store(true)
		f.lane.c.parking.turn(f)
		f.arm()
	}
}

// rested reports whether the fetch has rested for as long as it may.
func (f *feed) rested(now int64) bool {
	return f.rest.forbidden || now-f.rest.behind >= f.longestRest()
}

func (f *feed) longestRest() int64 { return min(f.delay/2, maxRest).Milliseconds() }

// endRest has the fetch go on when its time is over; the caller holds the lock.
func (f *feed) endRest(now int64) {
	if s := &f.rest; s.on && (f.rested(now) || now-s.wroteAt >= stormGap) {
		s.on = false
		f.full.Store(false)
		f.lane.c.parking.turn(f)
	}
}

// restEnds is when to see whether the rest is over.
func (f *feed) restEnds() int64 {
	s := &f.rest
	if !s.on {
		return math.MaxInt64
	}
	return min(s.wroteAt+stormGap, s.behind+f.longestRest())
}

// read notes up to where the tier was read.
func (s *rest) read(to int64) {
	if to >= s.wroteTo {
		s.behind, s.forbidden = 0, false
	}
}
