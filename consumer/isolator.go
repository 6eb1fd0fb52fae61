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
	urgent  bool          // one of these ran alone, and is to be named no longer
	size    int           // of a group
	// The group: suspects that the last commit has named and that run, or may start.
	hands map[*feed][]offsets.Span
	// While a record runs alone: its lane. No other record of the process starts.
	alone atomic.Pointer[lane]
	// That lane waits, too, until no handler runs: a unit of its own may have many records.
	gathers atomic.Bool
	// A record that ran alone and ignores its timeout: others start again, and it stays named.
	kept *suspect
}

// mostGroups is the number of groups into which the suspects are cut.
const mostGroups = 64

// aloneWithin bounds the wait until no handler runs but late ones. No record starts meanwhile.
const aloneWithin = time.Minute

// copiedWithin bounds the wait for the copy of a condemned record. Until then no suspect starts.
const copiedWithin = 10 * time.Second

// namesAgain is how long the suspects of a feed wait after a commit did not name them.
const namesAgain = time.Second

// lookAgain is the least time between two looks at which suspects have run: a look costs time for
// each record that waits.
const lookAgain = 2 * time.Millisecond

func (s *isolator) init(c *Consumer) {
	s.c, s.changed, s.hands = c, make(chan struct{}, 1), map[*feed][]offsets.Span{}
}

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
	return alone != nil && (alone != l || s.gathers.Load())
}

func (s *isolator) isAlone() bool { return s.alone.Load() != nil }

// run runs until ctx ends. Then all lanes drain: a record that runs alone stays so.
func (s *isolator) run(ctx context.Context) {
	defer func() {
		if s.kept != nil {
			s.kept.feed.origin.endAlone()
		}
	}()
	for ctx.Err() == nil {
		postponed, ready := s.step(ctx)
		if ready || ctx.Err() != nil {
			continue
		}
		s.unname()
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

// unname commits that the record which ran alone does so no more: a later kill must not charge it.
// It tries again while no broker answers, or the member joins, for aloneWithin at most. After a
// refusal the next tick tries again: others must not wait for a right that may never come.
func (s *isolator) unname() {
	for began := time.Now(); s.urgent; {
		err := s.c.commit(s.c.ctx, s.named) // which has logged it
		s.named = stillNamed(s.named)
		s.urgent = isPending(err) && time.Since(began) < aloneWithin && backoff.Wait(s.c.stop, namesAgain)
	}
}

// stillNamed returns which of the lanes the broker accepted no commit of that says what they no
// longer run. The next commit that names another record has to say so, too: that record may kill.
func stillNamed(lanes []*lane) (left []*lane) {
	for _, l := range lanes {
		l.mu.Lock()
		for f := range l.read() {
			if l.state == laneRunning && f.window.IsAsked() {
				left = append(left, l)
				break
			}
		}
		l.mu.Unlock()
	}
	return left
}

// goOn lets others start, after a commit that names no record alone which has run.
func (s *isolator) goOn() {
	if s.isAlone() {
		s.unname()
	}
	s.setAlone(nil)
}

// step runs a condemned record or a single one, or adds suspects to the group once half of it has
// run: one slow record must not hold up all others. ready is false if nothing is to be done;
// postponed suspects may be ready a little later.
func (s *isolator) step(ctx context.Context) (postponed, ready bool) {
	s.logIsolated()
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
// are left. What ignores its timeout stays named, but nobody waits for it.
func (s *isolator) settle() (left int) {
	for f, spans := range s.hands {
		waited, late := f.unrun(spans)
		if s.hands[f] = offsets.Union(waited, late); len(s.hands[f]) == 0 {
			delete(s.hands, f)
			f.pardon()
			if _, ok := f.name(nil, nil); ok {
				s.unnames(f.lane, false)
			}
		}
		for _, span := range waited {
			left += int(span.Last - span.First + 1)
		}
	}
	if s.kept != nil && !s.kept.feed.runs(s.kept.offset) {
		s.endAlone(s.kept.feed)
		s.kept = nil
	}
	return left
}

// endAlone has the next commit say that no record of a feed runs alone.
func (s *isolator) endAlone(f *feed) {
	f.origin.endAlone()
	f.pardon()
	f.unnameAlone(s.hands[f])
	s.unnames(f.lane, true) // also if a commit that is under way says so
}

// candidates returns the suspects that are ready.
func (s *isolator) candidates() (found suspected) {
	now := time.Now()
	for _, l := range s.c.lanesNow() {
		l.mu.Lock()
		l.updateHold() // so that room, once there is some, wakes it
		if l.isRunning() && l.isIsolated() {
			for f := range l.read() {
				if f.window.Suspects().IsIsolated() {
					found.add(f, s.hands[f], now)
				}
			}
		}
		l.mu.Unlock()
	}
	return found
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

// forward lets a condemned record start, which is dead-lettered, and waits until its copy is safe,
// so that a death of the next suspect does not write it again. Its lane's other partitions and all
// other lanes go on meanwhile: the copy may have to wait for as long as its topic cannot be
// written.
func (s *isolator) forward(ctx context.Context, at suspect) {
	at.feed.hand(at.span())
	end := time.Now().Add(copiedWithin)
	for wait := time.Millisecond; at.feed.isUnfinished(at.offset) && time.Now().Before(end); wait = min(2*wait, 100*time.Millisecond) {
		if !backoff.Wait(ctx, wait) {
			return
		}
	}
	// the next commit says that it is finished, before another suspect runs
	s.unnames(at.feed.lane, true)
}

// unnames notes that the next commit has to name records of a lane no longer.
func (s *isolator) unnames(l *lane, urgent bool) {
	if s.urgent = s.urgent || urgent; !slices.Contains(s.named, l) {
		s.named = append(s.named, l)
	}
}

// await waits for a change. It reports false if ctx ends.
func (s *isolator) await(ctx context.Context) bool {
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
func (s *isolator) runAlone(ctx context.Context, at suspect) {
	s.gathers.Store(true)
	s.setAlone(at.feed.lane)
	at.feed.lane.wake() // it may have been alone before
	late, ok := s.awaitOthers(ctx)
	s.gathers.Store(false)
	at.feed.lane.wake()
	switch {
	case !ok:
		return
	case late:
		s.runBeside(at)
		return
	}
	f, span := at.feed, at.span()
	if !s.name(map[*feed][]offsets.Span{f: span}, &offsets.Alone{Offset: at.offset})[f] {
		return
	}
	f.origin.beginAlone(at.offset, func(decoding bool) {
		if f.nameDecoding(at.offset, decoding) {
			// it has logged the error; the record runs all the same
			_ = s.c.commit(s.c.ctx, []*lane{f.lane})
		}
	})
	f.hand(span)
	for {
		switch waited, late := f.unrun(span); {
		case len(waited) > 0:
			if !s.await(ctx) {
				f.origin.endAlone()
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
func (s *isolator) runBeside(at suspect) {
	s.goOn()
	s.runGroup(map[*feed][]offsets.Span{at.feed: at.span()})
}

// hasCompany reports whether a handler of the process ignores its timeout, or the loss of its lane.
func (s *isolator) hasCompany() bool {
	_, late := s.handlers()
	return late || s.kept != nil
}

// handlers reports whether handlers run that may be waited for, and whether late ones do, which
// ignore their timeouts or the loss of their lanes.
func (s *isolator) handlers() (running, late bool) {
	now := time.Now()
	running, late = s.c.abandonedRun(now)
	for _, l := range s.c.lanesNow() {
		l.mu.Lock()
		n := len(l.overdue(now))
		running, late = running || len(l.units) > n, late || n > 0
		l.mu.Unlock()
	}
	return running, late
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

// awaitOthers waits until no handler runs but late ones, which ignore their timeouts, for
// aloneWithin at most. It reports whether any still runs, and false if ctx ends.
func (s *isolator) awaitOthers(ctx context.Context) (late, ok bool) {
	began := time.Now()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		running, late := s.handlers()
		if !running {
			return late, true
		}
		if time.Since(began) > aloneWithin {
			s.c.log.Warn("siding: a record that may have killed a process runs beside others, whose handlers do not end", "waited", aloneWithin)
			return true, true
		}
		if !backoff.Wait(ctx, wait) {
			return false, false
		}
	}
}

// runGroup names more suspects in a commit, beside those of the group that have not run yet, and
// lets those start that it named.
func (s *isolator) runGroup(more map[*feed][]offsets.Span) {
	hands := map[*feed][]offsets.Span{}
	for f, spans := range more {
		hands[f] = offsets.Union(s.hands[f], spans)
	}
	named := s.name(hands, nil)
	for f, spans := range hands {
		if named[f] {
			s.hands[f] = spans
		} else if len(s.hands[f]) > 0 {
			f.name(s.hands[f], nil) // as the commit before did
		}
		if len(s.hands[f]) > 0 {
			f.hand(s.hands[f])
		}
	}
}

// name names records of feeds in a commit. It returns for which of the feeds a commit was accepted.
func (s *isolator) name(hands map[*feed][]offsets.Span, alone *offsets.Alone) map[*feed]bool {
	lanes := s.named // the commit no longer names what ran before
	s.named = nil
	asked := map[*feed]int64{}
	for f, spans := range hands {
		n, ok := f.name(spans, alone)
		if !ok {
			continue
		}
		asked[f] = n
		if !slices.Contains(lanes, f.lane) {
			lanes = append(lanes, f.lane)
		}
	}
	// It has logged the error, which may be that of another lane. A commit leaves out a lane that
	// the member does not own any more.
	err := s.c.commit(s.c.ctx, lanes)
	s.named = stillNamed(lanes)
	s.urgent = s.urgent && isPending(err)
	named := map[*feed]bool{}
	for f := range hands {
		n, ok := asked[f]
		if named[f] = ok && f.isNamed(n); !named[f] {
			f.postpone(namesAgain)
			if ok && alone != nil {
				f.unnameAlone(s.hands[f])
				if isUnanswered(err) {
					s.unnames(f.lane, true)
				}
			} else if ok {
				f.name(nil, nil)
			}
		}
	}
	return named
}
