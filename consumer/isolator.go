package consumer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// isolator finds records that kill the process. It runs the suspects of all lanes in groups that a
// commit names before, and those that were named when a process died one by one.
//
// See DESIGN.md, "Records that kill the process".
type isolator struct {
	c       *Consumer
	changed chan struct{} // capacity 1: a suspect became ready, or has run
	named   []*lane       // the last commit named records of theirs
	size    int           // of a group
	// While a record runs alone: its lane. No other record of the process starts.
	alone atomic.Pointer[lane]
}

// mostGroups is the number of groups into which the suspects are cut.
const mostGroups = 64

// aloneWithin bounds the wait until no other handler runs. A handler that ignores its context could
// make it last for ever.
const aloneWithin = time.Minute

func (s *isolator) init(c *Consumer) { s.c, s.changed = c, make(chan struct{}, 1) }

// signal tells that there may be something to do.
func (s *isolator) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// holds reports whether a lane must wait while a record of another one runs alone.
func (s *isolator) holds(l *lane) bool {
	alone := s.alone.Load()
	return alone != nil && alone != l
}

func (s *isolator) isAlone() bool { return s.alone.Load() != nil }

// run runs until ctx ends.
func (s *isolator) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !s.step(ctx) {
			s.setAlone(nil)
			select {
			case <-s.changed:
			case <-ctx.Done():
			}
		}
	}
	s.setAlone(nil)
}

// suspect is a record that waits to be run.
type suspect struct {
	feed   *feed
	offset int64
}

// step runs a condemned record, a single one or a group. It reports false if none is ready.
func (s *isolator) step(ctx context.Context) bool {
	s.logIsolated()
	single, group, left := s.candidates()
	if s.size = max(s.size, (left+mostGroups-1)/mostGroups); left == 0 {
		s.size = 0
	}
	switch {
	case single != nil:
		s.runAlone(ctx, *single)
	case len(group) > 0:
		s.setAlone(nil)
		s.runGroup(ctx, group[:min(len(group), s.size)])
	default:
		return false
	}
	return true
}

// candidates returns a suspect that is to run alone, if one is ready, the others that are ready,
// and how many suspects there are.
func (s *isolator) candidates() (single *suspect, group []suspect, left int) {
	for _, l := range s.c.lanesNow() {
		l.mu.Lock()
		if l.isRunning() && l.isIsolated() {
			for f := range l.read() {
				if !f.grant.isIsolated() {
					continue
				}
				left += int(f.grant.suspects.Suspect - f.tracker.Floor())
				ordered := s.c.cfg.Order == OrderPartition && f.tier.Topic == ""
				for i, offset := range f.waiting() {
					if !f.grant.isSuspect(offset) {
						continue
					}
					at := suspect{f, offset}
					if f.grant.condemned(offset) == nil && !offsets.In(f.grant.suspects.Singly, offset) {
						group = append(group, at)
						continue
					}
					if single == nil && (i == 0 || !ordered) {
						single = &at
					}
					if ordered {
						break // those before it run first
					}
				}
			}
		}
		l.mu.Unlock()
	}
	return single, group, left
}

// logIsolated logs which feeds have suspects that are isolated, once.
func (s *isolator) logIsolated() {
	for _, l := range s.c.lanesNow() {
		for _, f := range l.tell() {
			l.log.Warn("siding: processes died while they ran these records; they run in groups and one by one, until the one that kills is found",
				"feed", f.topic, "deaths", f.deaths, "from", f.from, "to", f.to)
		}
	}
}

// runGroup names suspects in a commit, and waits until they have run.
func (s *isolator) runGroup(ctx context.Context, group []suspect) {
	hands := map[*feed][]offsets.Span{}
	for _, at := range group {
		hands[at.feed] = offsets.Union(hands[at.feed], []offsets.Span{{First: at.offset, Last: at.offset}})
	}
	s.runNamed(ctx, hands, nil)
}

// runAlone names a suspect in a commit, and waits until it has run while no other record does.
func (s *isolator) runAlone(ctx context.Context, at suspect) {
	s.setAlone(at.feed.lane)
	if !s.awaitOthers(ctx) {
		return
	}
	alone := &offsets.Alone{Offset: at.offset}
	s.runNamed(ctx, map[*feed][]offsets.Span{at.feed: {{First: at.offset, Last: at.offset}}}, alone)
}

// setAlone makes a lane the only one that may start records; nil ends that.
func (s *isolator) setAlone(l *lane) {
	was := s.alone.Swap(l)
	if was == l {
		return
	}
	if was != nil {
		was.setOnly(false)
	}
	if l != nil {
		l.setOnly(true)
	}
	for _, other := range s.c.lanesNow() {
		other.wake()
	}
}

// awaitOthers waits until no handler runs. It reports false if ctx ends.
func (s *isolator) awaitOthers(ctx context.Context) bool {
	began := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		running := slices.ContainsFunc(s.c.lanesNow(), func(l *lane) bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.units) > 0
		})
		if !running {
			return true
		}
		if time.Since(began) > aloneWithin {
			s.c.log.Warn("siding: a record that may have killed a process runs beside others, whose handlers do not end", "waited", aloneWithin)
			return true
		}
		if !backoff.Wait(ctx, wait) {
			return false
		}
	}
}

// runNamed names records of feeds in a commit, lets them start, and waits until each has run, or
// cannot start any more.
func (s *isolator) runNamed(ctx context.Context, hands map[*feed][]offsets.Span, alone *offsets.Alone) {
	lanes := s.named // the commit no longer names what ran before
	s.named = nil
	for f, spans := range hands {
		if f.name(spans, alone) && !slices.Contains(lanes, f.lane) {
			lanes = append(lanes, f.lane)
		}
	}
	defer func() {
		for f := range hands {
			if f.name(nil, nil) {
				s.named = append(s.named, f.lane)
			}
		}
	}()
	if err := s.c.commit(s.c.ctx, lanes); err != nil {
		backoff.Wait(ctx, 100*time.Millisecond) // commit has logged the error
		return
	}
	if alone != nil {
		for f := range hands {
			phase := func(decoding bool) { s.decoding(f, alone.Offset, decoding) }
			f.origin.alone.Store(&phase)
			defer f.origin.alone.Store(nil)
		}
		runsAlone.Add(1)
		defer runsAlone.Add(-1)
	}
	for f, spans := range hands {
		f.hand(spans)
	}
	for !s.haveRun(hands) {
		select {
		case <-s.changed:
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
	for f := range hands {
		f.pardon()
	}
}

// haveRun reports whether no record of the hands runs, and none can start.
func (s *isolator) haveRun(hands map[*feed][]offsets.Span) bool {
	for f, spans := range hands {
		if f.runsSome(spans) {
			return false
		}
	}
	return true
}

// decoding commits that a record that runs alone is being decoded, or is no more.
func (s *isolator) decoding(f *feed, offset int64, now bool) {
	if f.name([]offsets.Span{{First: offset, Last: offset}}, &offsets.Alone{Offset: offset, Decoding: now}) {
		// it has logged the error; the record runs all the same
		_ = s.c.commit(s.c.ctx, []*lane{f.lane})
	}
}
