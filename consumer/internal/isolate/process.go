package isolate

import (
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Process is the consumer whose records an [Isolator] runs.
type Process interface {
	// Lanes returns the lanes that the process owns.
	Lanes() []Lane
	// FormerRun reports whether handlers of lanes run that were closed a moment ago, and whether
	// some do which ignore that.
	FormerRun(now time.Time) (running, late bool)
	// Commit commits the lanes' offsets and evidence, and logs an error.
	Commit(lanes []Lane) Answer
	// Wait reports false if the consumer stops meanwhile.
	Wait(d time.Duration) bool
}

// Answer is what is known of a commit.
type Answer int

// Answers to a commit.
const (
	Final      Answer = iota // the broker accepted or refused it
	Unsent                   // no broker could be asked
	Unanswered               // it was sent, and may be accepted yet
)

// Lane is a lane of the process. Lanes are comparable. Its methods lock it.
type Lane interface {
	// Wake has a worker look for a record that may start.
	Wake()
	// SetOnly lets nothing of the lane start but suspects that a commit has named, or ends that.
	SetOnly(on bool)
	// LogIsolated logs which suspects of the lane are isolated, once.
	LogIsolated()
	// Handlers reports whether handlers of the lane run that may be waited for, and whether some
	// run that ignore their timeouts.
	Handlers(now time.Time) (running, late bool)
	// AwaitsCommit reports whether the lane runs, and a commit that one of its feeds asked for was
	// not accepted yet.
	AwaitsCommit() bool
	// EachIsolated calls see for each feed with isolated suspects, if the lane lets records start.
	// see must not call methods of the lane or the feed.
	EachIsolated(see func(f Feed, is *State))
}

// Feed is the intake of one partition of a lane. Feeds are comparable. Its methods lock the lane.
type Feed interface {
	Lane() Lane
	// Locked calls do with what decides about the feed's records.
	Locked(do func(is *State))
	// Unfinished returns which records of the spans run or can start, and which of them run in a
	// unit whose handler ignores its timeout: it may do so for ever.
	Unfinished(spans []offsets.Span) (left, late []offsets.Span)
	// Runs reports whether a worker has the record at an offset.
	Runs(offset int64) bool
	// BeginAlone records that a record runs alone. announce is called before it is decoded, and
	// afterwards.
	BeginAlone(offset int64, announce func(isDecoding bool))
	// EndAlone records that it does no more.
	EndAlone()
}

// State is what decides about the records of a feed, for as long as its lane is locked.
type State struct {
	Window  *Window
	Tracker *offsets.Tracker
	Running bool           // the lane is neither starting, draining nor gone
	Ordered bool           // no record of the feed may overtake another one
	Waiting func() []int64 // offsets of the records that wait for a worker, in their order
}

// update changes what the next commit says of a feed's suspects. It returns a number for isNamed,
// and reports false if the lane does not run any more.
func update(f Feed, change func(*Suspects)) (asked int64, ok bool) {
	f.Locked(func(is *State) {
		if s := is.Window.suspects; s != nil && is.Running {
			change(s)
			asked, ok = is.Window.AskAgain(), true
		}
	})
	return asked, ok
}

// name has the next commit say which suspects are to run together, or which one alone; none may
// start yet.
func name(f Feed, spans []offsets.Span, alone *offsets.Alone) (asked int64, ok bool) {
	return update(f, func(s *Suspects) {
		if alone != nil {
			s.NameAlone(alone)
		} else {
			s.Name(spans)
		}
	})
}

// unnameAlone has the next commit say that no record of the feed runs alone. Those of a group that
// were named beside it may still start.
func unnameAlone(f Feed, group []offsets.Span) {
	update(f, func(s *Suspects) { s.UnnameAlone(group) })
}

// nameDecoding has the next commit say that the record which runs alone is being decoded, or is no
// more. It reports false if that record is named no longer.
func nameDecoding(f Feed, offset int64, now bool) bool {
	named := false
	_, ok := update(f, func(s *Suspects) { named = s.SetDecoding(offset, now) })
	return ok && named
}

// isNamed reports whether the broker has accepted a commit since name returned that number.
func isNamed(f Feed, asked int64) (named bool) {
	f.Locked(func(is *State) { named = is.Window.answered >= asked })
	return named
}

// postpone has the suspects of the feed wait for a time.
func postpone(f Feed, wait time.Duration) {
	f.Locked(func(is *State) {
		if s := is.Window.suspects; s != nil {
			s.Postpone(time.Now().Add(wait))
			is.Window.Wait()
		}
	})
}

// hand lets suspects start that a commit has named.
func hand(f Feed, spans []offsets.Span) {
	f.Locked(func(is *State) {
		if s := is.Window.suspects; s != nil {
			s.Hand(spans)
		}
	})
	f.Lane().Wake()
}

// endIsolation ends the isolation early when the last suspect is finished.
func endIsolation(f Feed) {
	f.Locked(func(is *State) {
		if s := is.Window.suspects; s != nil && is.Tracker.Floor() >= s.Suspect {
			is.Window.Ask()
		}
	})
}

// isUnfinished reports whether a record that the lane may run is not finished.
func isUnfinished(f Feed, offset int64) (unfinished bool) {
	f.Locked(func(is *State) {
		unfinished = is.Running && is.Window.suspects != nil && !is.Tracker.IsFinished(offset)
	})
	return unfinished
}
