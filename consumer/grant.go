package consumer

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// grant says which records of a feed may start. A commit names them first, so that after a crash
// the next owner knows which ones may have caused it. The lane's lock guards it.
//
// See DESIGN.md, "Records that kill the process".
type grant struct {
	limit     int           // Policy.CrashLimit; below 1 every record may start
	interval  time.Duration // between commits
	tier      bool          // of a tier's feed
	asks      func()        // has commitLoop commit before its next tick
	restUntil *atomic.Int64 // Consumer.restUntil: every record may start until then
	only      bool          // a record of the lane runs alone: nothing else of it starts

	until  int64 // records below it may start, by the last commit that the broker accepted
	window int64 // records that a commit grants
	begun  int64 // every record that started lies below
	ran    int64 // records that started since the last commit was made
	made   time.Time
	from   time.Time // when the first of them started
	held   bool      // a record waited for a commit since then
	// a record waits for a commit since then; zero if none does
	waits time.Time

	asked, answered int64 // commits that this feed wants, and those of them that were accepted

	suspects *suspects // nil: none
}

// firstWindow is how many records a lane may start before its second commit.
const firstWindow = 64

// maxWindow bounds what doubling makes of it.
const maxWindow = 1 << 24

// suspects are the records of a feed that may have killed earlier processes: those below end that
// are not finished.
type suspects struct {
	offsets.Evidence
	// isolated: they run in groups, or one by one, that a commit names
	isolated bool
	told     bool           // it was logged
	named    []offsets.Span // those that run together, in the next commit
	hand     []offsets.Span // those that may start, since a commit has named them
	// none is named before that time, since a commit did not name them
	postponed time.Time
	// leader epoch up to which the owner had read that named them, -1 if that is unknown
	epoch int32
	since time.Time // when this owner read of them
}

// start begins with what a commit said. No record beyond the log's end can have killed a process.
func (g *grant) start(at startPosition, self uint64) {
	if g.limit < 1 {
		return
	}
	said, floor, end := at.said.Evidence, at.next.Offset, at.end
	g.begun, g.asked = floor, 1
	died := said.Process != 0 && said.Process != self
	s := &suspects{since: time.Now(), epoch: at.epoch, Evidence: offsets.Evidence{Deaths: said.Deaths, Suspect: said.Suspect, Singly: said.Singly, Condemned: said.Condemned}}
	if died && said.Until > floor {
		s.Deaths++
		s.Suspect = max(s.Suspect, said.Until)
	}
	if died && said.Alone != nil {
		s.Condemned = append(s.Condemned, *said.Alone)
	}
	// Retention may have deleted some, or an operator have passed over them.
	s.Singly = offsets.Above(s.Singly, floor)
	s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return a.Offset < floor })
	if end >= 0 {
		s.Suspect = min(s.Suspect, end)
	}
	if s.Suspect <= floor {
		return
	}
	s.isolated = s.Deaths >= g.limit-1 || len(s.Condemned)+len(s.Singly) > 0
	g.suspects = s
}

// handEnd bounds what the next commit lets start, which a death is counted for.
func (s *suspects) handEnd() (end int64) {
	if n := len(s.named); n > 0 {
		end = s.named[n-1].Last + 1
	}
	if s.Alone != nil {
		end = max(end, s.Alone.Offset+1)
	}
	return end
}

// inherit returns what the lane that replaces this one knows of suspects. No process has died.
func (g *grant) inherit(self uint64) (e offsets.Evidence) {
	if s := g.suspects; s != nil {
		e = s.Evidence
		e.Process, e.Singly = self, offsets.Union(e.Singly, s.named)
		e.RunSingly()
	}
	return e
}

// isVoidedBy reports whether the owner that named suspects cannot have read a record, as it was
// written under a later leader. A log that lost its end has other records at these offsets.
func (g *grant) isVoidedBy(r *kgo.Record) bool {
	s := g.suspects
	return s != nil && s.epoch >= 0 && r.LeaderEpoch > s.epoch
}

// read notes that a record was read. If the owner that named suspects cannot have read it, none is
// named from there on. They still count as suspects: that owner may have read on since its commit.
func (g *grant) read(r *kgo.Record) {
	if !g.isVoidedBy(r) {
		return
	}
	s := g.suspects
	s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return a.Offset >= r.Offset })
	s.Singly = offsets.Intersect(s.Singly, offsets.Span{Last: r.Offset - 1})
	s.epoch = -1
}

// allows reports whether the record at an offset may start.
func (g *grant) allows(offset int64) bool {
	if g.limit < 1 {
		return true
	}
	if g.only || g.isSuspect(offset) {
		return g.suspects != nil && offsets.In(g.suspects.hand, offset)
	}
	if g.followsSuspects(offset) {
		return false
	}
	if offset >= g.until && time.Now().UnixNano() < g.restUntil.Load() {
		return true
	}
	if offset >= g.until {
		g.wait()
		g.held = true
		g.ask()
	}
	return offset < g.until
}

// granted reports whether a commit lets the record at an offset start. Unlike allows, it asks for
// none.
func (g *grant) granted(offset int64) bool { return g.limit < 1 || offset < g.until && !g.only }

// wait notes that a record waits for a commit.
func (g *grant) wait() {
	if g.waits.IsZero() {
		g.waits = time.Now()
	}
}

// prefix returns how many of the records, of which the first may start, may start together.
func (g *grant) prefix(recs []*kgo.Record) int {
	if !g.isIsolated() && g.allows(recs[len(recs)-1].Offset) {
		return len(recs)
	}
	for i, r := range recs {
		if i > 0 && (!g.allows(r.Offset) || g.condemned(r.Offset) != nil || g.condemned(recs[0].Offset) != nil) {
			return i
		}
	}
	return len(recs)
}

// isSuspect reports whether the record at an offset starts only when a commit names it.
func (g *grant) isSuspect(offset int64) bool {
	return g.suspects != nil && g.suspects.isolated && offset < g.suspects.Suspect
}

// followsSuspects reports whether the record at an offset waits until all suspects have run: of a
// source, none overtakes them.
func (g *grant) followsSuspects(offset int64) bool {
	return g.isIsolated() && !g.tier && !g.isSuspect(offset)
}

// condemned returns the failure of a record that must not run; nil if it may.
func (g *grant) condemned(offset int64) *crashError {
	if g.suspects == nil {
		return nil
	}
	i := slices.IndexFunc(g.suspects.Condemned, func(a offsets.Alone) bool { return a.Offset == offset })
	if i < 0 {
		return nil
	}
	return &crashError{Alone: g.suspects.Condemned[i], deaths: g.suspects.Deaths, by: g.suspects.since}
}

// isIsolated reports whether the feed has suspects that run in groups or one by one.
func (g *grant) isIsolated() bool { return g.suspects != nil && g.suspects.isolated }

// begin notes that records start, the last one at an offset.
func (g *grant) begin(records int, last int64) {
	if g.limit < 1 || g.isSuspect(last) {
		return
	}
	if g.ran == 0 {
		g.from = time.Now()
	}
	g.ran += int64(records)
	g.begun = max(g.begun, last+1)
	if g.until-g.begun < g.window/2 {
		g.ask()
	}
}

// ask asks for a commit, unless one is asked for.
func (g *grant) ask() {
	if g.asked == g.answered {
		g.asked++
		g.asks()
	}
}

// isAsked reports whether a commit is asked for, and not accepted yet.
func (g *grant) isAsked() bool { return g.asked != g.answered }

// accept notes that the broker accepted a commit with that evidence. It reports whether more
// records may start.
func (g *grant) accept(e offsets.Evidence, asked int64) (more bool) {
	g.answered, g.waits = max(g.answered, asked), time.Time{}
	if e.Until > g.until {
		g.until = e.Until
		return true
	}
	return false
}

// evidence is what the next commit says. next is the offset of the feed's next record, -1 if none
// waits. over reports that the lane drains and none of its handlers runs: then the commit hands
// over cleanly.
func (g *grant) evidence(self uint64, tracker *offsets.Tracker, next int64, now time.Time, over bool) (e offsets.Evidence) {
	if g.limit < 1 {
		return e
	}
	floor := tracker.Floor()
	if s := g.suspects; s != nil {
		s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return tracker.IsFinished(a.Offset) })
		if floor >= s.Suspect {
			g.suspects = nil
		} else {
			e = s.Evidence
			if over {
				e.Alone = nil
			} else {
				e.Singly = offsets.Union(e.Singly, s.named)
			}
			e.Singly = offsets.Above(e.Singly, floor)
		}
	}
	e.Process = self
	// The suspects of a tier may wait for hours until they are due. Later records need not.
	if over {
		return e
	}
	if g.isIsolated() && !g.tier {
		e.Until = g.suspects.handEnd()
		return e
	}
	g.widen(now, floor >= g.begun)
	e.Until = max(g.until, max(g.begun, next, floor)+g.window)
	return e
}

// widen sets the window for the next commit: three times of what ran in an interval between
// commits, so that half of it lasts longer than one. A commit that comes earlier, because half of
// the window was used, doubles it. If all that started has finished before that commit, the lane
// outruns its commits, and each further one would hold up what was fetched for the lane. Its window
// then follows its pace, up to 64 times.
func (g *grant) widen(now time.Time, idle bool) {
	in := func(d time.Duration) int64 {
		return int64(min(float64(3*g.ran)*float64(g.interval)/float64(d), maxWindow))
	}
	since := now.Sub(g.made)
	switch early := since < g.interval*9/10; {
	case g.made.IsZero():
		g.window = firstWindow
	case g.held || early && g.until-g.begun < g.window/2:
		most := 2 * g.window
		if idle {
			most = max(most, min(in(now.Sub(g.from)), 64*g.window))
		}
		g.window = min(most, maxWindow)
	case !early:
		g.window = max(firstWindow, in(since))
	}
	g.ran, g.made, g.held = 0, now, false
}
