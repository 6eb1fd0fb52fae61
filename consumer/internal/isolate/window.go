// Package isolate says which records of a partition may start, so that one that kills its process
// is found. A commit names the records that run until the next one. The owner that reads it after a
// death knows the suspects: those of them that are not finished. They run in groups, and then one
// by one.
//
// A [Window] is a state machine for one partition. It has neither a lock nor a clock of its own,
// and its caller makes the commits.
//
// See DESIGN.md, "Records that kill the process".
package isolate

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Settings say how a window behaves.
type Settings struct {
	CrashLimit int           // Policy.CrashLimit; below 1 every record may start
	Interval   time.Duration // between commits
	// Tier is for a retry topic: its suspects may be due in hours, and hold up no other record.
	Tier bool
	// Ask has a commit be made before the next tick.
	Ask func()
	// Rests reports whether commits rest: every record may start meanwhile.
	Rests func() bool
	Now   func() time.Time
}

// Window says which records of a partition may start. A commit names them first, so that after a
// crash the next owner knows which ones may have caused it. The zero value lets all start. It is
// not safe for concurrent use.
type Window struct {
	set  Settings
	only bool // a record of the lane runs alone: nothing else of it starts

	until int64 // records below it may start, by the last commit that the broker accepted
	size  int64 // records that a commit names
	begun int64 // every record that started lies below
	ran   int64 // records that started since the last commit was made
	made  time.Time
	from  time.Time // when the first of them started
	held  bool      // a record waited for a commit since then
	// a record waits for a commit since then; zero if none does
	waits time.Time

	asked, answered int64 // commits that are wanted, and those of them that were accepted

	suspects *Suspects // nil: none
}

// firstSize is how many records a lane may start before its second commit.
const firstSize = 64

// maxSize bounds what doubling makes of it.
const maxSize = 1 << 24

// New returns a window that begins with what a commit said. The commit that starts the lane is
// asked for.
func New(set Settings, at Start) Window {
	w := Window{set: set}
	if w.Off() {
		return w
	}
	w.begun, w.asked = at.Floor, 1
	w.suspects = newSuspects(set.CrashLimit, at, set.Now())
	return w
}

// Off reports whether all records may start, and commits say nothing.
func (w *Window) Off() bool { return w.set.CrashLimit < 1 }

// SwitchOff lets all records start: no commit can name them any more.
func (w *Window) SwitchOff() { w.set.CrashLimit = 0 }

// SetOnly lets nothing start but suspects that a commit has named, or ends that.
func (w *Window) SetOnly(on bool) { w.only = on }

// IsOnly reports whether nothing starts but suspects that a commit has named.
func (w *Window) IsOnly() bool { return w.only }

// Suspects returns the suspects, nil if there are none.
func (w *Window) Suspects() *Suspects { return w.suspects }

// Acquit drops the suspects: none of them can have run.
func (w *Window) Acquit() { w.suspects = nil }

// MayStart reports whether the record at an offset may start. If it waits for a commit, that is
// asked for.
func (w *Window) MayStart(offset int64) bool {
	switch {
	case w.Off():
		return true
	case w.only || w.suspects.Has(offset):
		return w.suspects.mayStart(offset)
	case w.suspects.IsIsolated() && !w.set.Tier: // of a source, none overtakes suspects
		return false
	case offset < w.until || w.set.Rests():
		return true
	}
	w.held = true
	w.Wait()
	w.Ask()
	return false
}

// Prefix returns how many of the records, of which the first may start, may start together.
func (w *Window) Prefix(recs []*kgo.Record) int {
	if !w.suspects.IsIsolated() && w.MayStart(recs[len(recs)-1].Offset) {
		return len(recs)
	}
	condemned := func(r *kgo.Record) bool {
		_, is := w.suspects.Condemns(r.Offset)
		return is
	}
	for i, r := range recs {
		if i > 0 && (!w.MayStart(r.Offset) || condemned(r) || condemned(recs[0])) {
			return i
		}
	}
	return len(recs)
}

// IsNamed reports whether a commit lets the record at an offset start.
func (w *Window) IsNamed(offset int64) bool { return w.Off() || offset < w.until && !w.only }

// Begin records that so many records start, the last one at an offset. Once half of those that the
// last commit named have started, it asks for another one.
func (w *Window) Begin(records int, last int64) {
	if w.Off() || w.suspects.Has(last) {
		return
	}
	if w.ran == 0 {
		w.from = w.set.Now()
	}
	w.ran += int64(records)
	w.begun = max(w.begun, last+1)
	if w.until-w.begun < w.size/2 {
		w.Ask()
	}
}

// Wait records that a record, or suspects, wait for a commit to be accepted.
func (w *Window) Wait() {
	if w.waits.IsZero() {
		w.waits = w.set.Now()
	}
}

// WaitsSince returns since when a record waits for a commit; zero if none does.
func (w *Window) WaitsSince() time.Time { return w.waits }

// Ask asks for a commit, unless one is asked for.
func (w *Window) Ask() {
	if w.asked == w.answered {
		w.asked++
		w.set.Ask()
	}
}

// AskAgain asks for a commit that is made later than now, and returns its number.
func (w *Window) AskAgain() int64 {
	w.asked++
	return w.asked
}

// IsAsked reports whether a commit is asked for, and not accepted yet.
func (w *Window) IsAsked() bool { return w.asked != w.answered }

// Asked returns the number of the last commit that was asked for.
func (w *Window) Asked() int64 { return w.asked }

// Answered returns the number of the last commit that was asked for and accepted.
func (w *Window) Answered() int64 { return w.answered }

// Accept records that the broker accepted a commit with that evidence, made when that number was
// asked for. It reports whether more records may start.
func (w *Window) Accept(e offsets.Evidence, asked int64) (more bool) {
	w.answered, w.waits = max(w.answered, asked), time.Time{}
	if e.Until > w.until {
		w.until = e.Until
		return true
	}
	return false
}

// Evidence returns what the next commit of a process says. next is the offset of the partition's
// next record, -1 if none waits. over reports that the lane drains and none of its handlers runs:
// then the commit hands over cleanly.
func (w *Window) Evidence(process uint64, tracker *offsets.Tracker, next int64, now time.Time, over bool) (e offsets.Evidence) {
	if w.Off() {
		return e
	}
	floor := tracker.Floor()
	if s := w.suspects; s != nil {
		s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return tracker.IsFinished(a.Offset) })
		if floor >= s.Suspect {
			w.suspects = nil
		} else {
			e = s.evidence(floor, over)
		}
	}
	e.Process = process
	// The suspects of a tier may wait for hours until they are due. Later records need not.
	if over {
		return e
	}
	if w.suspects.IsIsolated() && !w.set.Tier {
		e.Until = w.suspects.handEnd()
		return e
	}
	w.widen(now, floor >= w.begun)
	e.Until = max(w.until, max(w.begun, next, floor)+w.size)
	return e
}

// widen sets the size for the next commit: three times what ran in an interval between commits, so
// that half of it lasts longer than one. A commit that comes earlier, because half of the window
// was used, doubles it. If all that started has finished before that commit, the lane outruns its
// commits, and each further one would hold up what was fetched for the lane. Its window then
// follows its pace, up to 64 times.
func (w *Window) widen(now time.Time, idle bool) {
	in := func(d time.Duration) int64 {
		return int64(min(float64(3*w.ran)*float64(w.set.Interval)/float64(d), maxSize))
	}
	since := now.Sub(w.made)
	switch early := since < w.set.Interval*9/10; {
	case w.made.IsZero():
		w.size = firstSize
	case w.held || early && w.until-w.begun < w.size/2:
		most := 2 * w.size
		if idle {
			most = max(most, min(in(now.Sub(w.from)), 64*w.size))
		}
		w.size = min(most, maxSize)
	case !early:
		w.size = max(firstSize, in(since))
	}
	w.ran, w.made, w.held = 0, now, false
}
