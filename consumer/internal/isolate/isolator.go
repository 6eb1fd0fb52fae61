package isolate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Isolator finds records that kill the process. It runs the suspects of all lanes in groups that a
// commit names before, and those that were named when a process died one by one. Run is its
// goroutine; its other methods are safe for concurrent use.
type Isolator struct {
	process Process
	log     *slog.Logger
	changed chan struct{} // capacity 1: a suspect became ready, or has run
	naming  naming
	size    int // of a group
	// The group: suspects that the last commit has named and that run, or may start.
	hands map[Feed][]offsets.Span
	// While a record runs alone: its lane. No other record of the process starts.
	alone atomic.Pointer[Lane]
	// That lane waits, too, until no handler runs: a unit of its own may have many records.
	gathers atomic.Bool
	// A record that ran alone and ignores its timeout: others start again, and it stays named.
	kept *suspect
}

// mostGroups is the number of groups into which the suspects are cut.
const mostGroups = 64

// copiedWithin bounds the wait for the copy of a condemned record. Until then no suspect starts.
const copiedWithin = 10 * time.Second

// lookAgain is the least time between two looks at which suspects have run: a look costs time for
// each record that waits.
const lookAgain = 2 * time.Millisecond

// Init sets the process. The zero value holds no lane.
func (s *Isolator) Init(p Process, log *slog.Logger) {
	s.process, s.log, s.changed, s.naming.process, s.hands = p, log, make(chan struct{}, 1), p, map[Feed][]offsets.Span{}
}

// Signal has the isolator look whether there is something to do.
func (s *Isolator) Signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Holds reports whether a lane must wait while a record of another one runs alone.
func (s *Isolator) Holds(l Lane) bool {
	alone := s.alone.Load()
	return alone != nil && (*alone != l || s.gathers.Load())
}

// IsAlone reports whether a record runs alone, or is about to.
func (s *Isolator) IsAlone() bool { return s.alone.Load() != nil }

// Run runs until ctx ends. Then all lanes drain: a record that runs alone stays so.
func (s *Isolator) Run(ctx context.Context) {
	defer func() {
		if s.kept != nil {
			s.kept.feed.EndAlone()
		}
	}()
	for ctx.Err() == nil {
		postponed, ready := s.step(ctx)
		if ready || ctx.Err() != nil {
			continue
		}
		s.naming.unname()
		s.setAlone(nil)
		var again <-chan time.Time
		if postponed {
			again = time.After(namesAgain)
		}
		select {
		case <-s.changed:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// goOn lets others start, after a commit that names no record alone which has run.
func (s *Isolator) goOn() {
	if s.IsAlone() {
		s.naming.unname()
	}
	s.setAlone(nil)
}

// step runs a condemned record or a single one, or adds suspects to the group once half of it has
// run: one slow record must not hold up all others. ready is false if nothing is to be done;
// postponed suspects may be ready a little later.
func (s *Isolator) step(ctx context.Context) (postponed, ready bool) {
	for _, l := range s.process.Lanes() {
		l.LogIsolated()
	}
	left := s.settle()
	found := s.candidates()
	if s.size = max(s.size, (found.left+mostGroups-1)/mostGroups); found.left == 0 {
		s.size = 0
	}
	switch one := found.condemned != nil || found.single != nil; {
	case left > 0 && (one || len(found.groups) == 0 || left > s.size/2):
		if s.await(ctx) {
			backoff.Wait(ctx, lookAgain) // many may run within that time
		}
	case found.condemned != nil:
		s.goOn()
		s.forward(ctx, *found.condemned)
	case found.single != nil && s.hasCompany():
		s.runBeside(*found.single)
	case found.single != nil:
		s.runAlone(ctx, *found.single)
	case len(found.groups) > 0:
		s.goOn()
		s.runGroup(found.group(s.size - left))
	default:
		return found.postponed, false
	}
	return false, true
}

// settle removes from the group what has run, or cannot start any more, and returns how many of it
// are left. A record that ignores its timeout stays named, but the isolator does not wait for it.
func (s *Isolator) settle() (left int) {
	for f, spans := range s.hands {
		waited, late := f.Unfinished(spans)
		if s.hands[f] = offsets.Union(waited, late); len(s.hands[f]) == 0 {
			delete(s.hands, f)
			endIsolation(f)
			if _, ok := name(f, nil, nil); ok {
				s.naming.unnames(f.Lane(), false)
			}
		}
		for _, span := range waited {
			left += int(span.Last - span.First + 1)
		}
	}
	if s.kept != nil && !s.kept.feed.Runs(s.kept.offset) {
		s.endAlone(s.kept.feed)
		s.kept = nil
	}
	return left
}

// endAlone has the next commit say that no record of a feed runs alone.
func (s *Isolator) endAlone(f Feed) {
	f.EndAlone()
	endIsolation(f)
	unnameAlone(f, s.hands[f])
	s.naming.unnames(f.Lane(), true) // also if a commit that is under way says so
}

// candidates returns the suspects that are ready.
func (s *Isolator) candidates() (found suspected) {
	now := time.Now()
	for _, l := range s.process.Lanes() {
		l.EachIsolated(func(f Feed, is *State) { found.add(f, is, s.hands[f], now) })
	}
	return found
}

// forward lets a condemned record start, which is dead-lettered, and waits until its copy is safe,
// so that a death of the next suspect does not write it again. Its lane's other partitions and all
// other lanes go on meanwhile: the copy may have to wait for as long as its topic cannot be
// written.
func (s *Isolator) forward(ctx context.Context, at suspect) {
	hand(at.feed, at.span())
	end := time.Now().Add(copiedWithin)
	for wait := time.Millisecond; isUnfinished(at.feed, at.offset) && time.Now().Before(end); wait = min(2*wait, 100*time.Millisecond) {
		if !backoff.Wait(ctx, wait) {
			return
		}
	}
	// the next commit says that it is finished, before another suspect runs
	s.naming.unnames(at.feed.Lane(), true)
}

// await waits for a change. It reports false if ctx ends.
func (s *Isolator) await(ctx context.Context) bool {
	select {
	case <-s.changed:
	case <-time.After(time.Second):
	case <-ctx.Done():
		return false
	}
	return true
}

// runAlone names a suspect in a commit, and waits until it has run while no other record does, or
// until its handler ignores its timeout.
func (s *Isolator) runAlone(ctx context.Context, at suspect) {
	s.gathers.Store(true)
	s.setAlone(at.feed.Lane())
	at.feed.Lane().Wake() // it may have been alone before
	late, ok := s.awaitOthers(ctx)
	s.gathers.Store(false)
	at.feed.Lane().Wake()
	switch {
	case !ok:
		return
	case late:
		s.runBeside(at)
		return
	}
	f, span := at.feed, at.span()
	if !s.naming.name(map[Feed][]offsets.Span{f: span}, &offsets.Alone{Offset: at.offset}, s.hands[f])[f] {
		return
	}
	f.BeginAlone(at.offset, func(decoding bool) {
		if nameDecoding(f, at.offset, decoding) {
			s.process.Commit([]Lane{f.Lane()}) // the record runs, whatever the answer is
		}
	})
	hand(f, span)
	for {
		switch waited, late := f.Unfinished(span); {
		case len(waited) > 0:
			if !s.await(ctx) {
				f.EndAlone()
				return // the lane's last commit says what runs
			}
		case len(late) > 0:
			s.kept = &at
			return
		default:
			s.endAlone(f)
			return
		}
	}
}

// runBeside runs a suspect that should run alone as a group of its own, beside handlers that do not
// end: a death may be their doing.
func (s *Isolator) runBeside(at suspect) {
	s.goOn()
	s.runGroup(map[Feed][]offsets.Span{at.feed: at.span()})
}

// hasCompany reports whether a handler of the process ignores its timeout, or the loss of its lane.
func (s *Isolator) hasCompany() bool {
	_, late := s.handlers()
	return late || s.kept != nil
}

// handlers reports whether handlers run that may be waited for, and whether late ones do, which
// ignore their timeouts or the loss of their lanes.
func (s *Isolator) handlers() (running, late bool) {
	now := time.Now()
	running, late = s.process.FormerRun(now)
	for _, l := range s.process.Lanes() {
		runs, overdue := l.Handlers(now)
		running, late = running || runs, late || overdue
	}
	return running, late
}

// setAlone makes a lane the only one that may start records; nil ends that.
func (s *Isolator) setAlone(l Lane) {
	var now *Lane
	if l != nil {
		now = &l
	}
	was := s.alone.Swap(now)
	switch {
	case was == nil && now == nil || was != nil && now != nil && *was == l:
		return
	case was != nil:
		(*was).SetOnly(false)
	}
	if l != nil {
		l.SetOnly(true)
	}
	for _, other := range s.process.Lanes() {
		other.Wake()
	}
}

// awaitOthers waits until no handler runs but late ones, which ignore their timeouts, for
// aloneWithin at most. It reports whether any still runs, and false if ctx ends.
func (s *Isolator) awaitOthers(ctx context.Context) (late, ok bool) {
	began := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		running, late := s.handlers()
		if !running {
			return late, true
		}
		if time.Since(began) > aloneWithin {
			s.log.Warn("siding: a record that may have killed a process runs beside others, whose handlers do not end", "waited", aloneWithin)
			return true, true
		}
		if !backoff.Wait(ctx, wait) {
			return false, false
		}
	}
}

// runGroup names more suspects in a commit, beside those of the group that have not run yet, and
// lets those start that it named.
func (s *Isolator) runGroup(more map[Feed][]offsets.Span) {
	hands := map[Feed][]offsets.Span{}
	for f, spans := range more {
		hands[f] = offsets.Union(s.hands[f], spans)
	}
	named := s.naming.name(hands, nil, nil)
	for f, spans := range hands {
		if named[f] {
			s.hands[f] = spans
		} else if len(s.hands[f]) > 0 {
			name(f, s.hands[f], nil) // as the commit before did
		}
		if len(s.hands[f]) > 0 {
			hand(f, s.hands[f])
		}
	}
}
