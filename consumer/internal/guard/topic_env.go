package guard

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Lane is a lane of the topic.
type Lane interface {
	// Number is the number of its partition.
	Number() int32
	// Wake makes the lane look again at whether it may run.
	Wake()
	// WakeRetries makes it look again at its due retries.
	WakeRetries()
	// CouldProbe reports whether a record of its source could run now, if the guard lets it.
	CouldProbe() bool
	// Waits says what waits for the hold's end, or for something else.
	Waits() Waits
}

// Waits says what of a lane waits in a hold.
type Waits uint8

const (
	// Nothing waits, as far as is known.
	Nothing Waits = iota
	// Records of the source wait, and none can run.
	Records
	// Failing records of the source run again and again, as probes.
	Failing
	// Kept is a lane that something else than the guard keeps from running, or from reading.
	Kept
	// Over is a lane that runs nothing any more.
	Over
)

// Env is what a process gives to the guard of a topic.
type Env struct {
	// Elapsed returns the time since any one moment.
	Elapsed func() time.Duration
	// Lanes returns the lanes of the topic, in any order.
	Lanes func() []Lane
	// Ended reports whether no lane is left.
	Ended func() bool
	// Note takes an event. It is called under the topic's lock, and must not call the topic.
	Note func(Event)
}

// Event is a transition, or that the budget is used up.
type Event struct {
	Retries  bool // the budget; the other fields are of a transition
	From, To State
	At       time.Time
	Status   Status
}

// Status is the state of a topic's guard.
type Status struct {
	State     State
	Since     time.Time // it has this state
	Began     time.Time // it was closed last, unless it is
	Runs, Bad int64     // which led to the state
	Probes    int       // that have ended since Began
	NextProbe time.Time // the next round; zero unless there are rounds
	Last      BadRun
}

// BadRun is a failure that speaks for an outage.
type BadRun struct{ Class, Message string }

// inTurn sorts lanes by their turns: after the one that ran last, by their numbers.
func inTurn(all []Lane, ran int32) []Lane {
	slices.SortFunc(all, func(l, m Lane) int { return cmp.Compare(l.Number(), m.Number()) })
	i, _ := slices.BinarySearchFunc(all, ran+1, func(l Lane, n int32) int { return cmp.Compare(l.Number(), n) })
	return slices.Concat(all[i:], all[:i])
}

// outlasts reports whether the topic is held for so long; none is not.
func (s *Status) outlasts(d time.Duration) bool {
	return s != nil && s.State == Held && time.Since(s.Since) >= d
}

// Share returns the share of bad runs that led to the state.
func (s *Status) Share() float64 { return float64(s.Bad) / float64(max(s.Runs, 1)) }

// Why says for an operator which runs led to the state, and how the last bad one failed.
func (s *Status) Why() string {
	text := fmt.Sprintf("%.0f %% of %d runs failed", 100*s.Share(), s.Runs)
	if s.State != Closed {
		text += ", the last with class " + s.Last.Class
	}
	return text
}

// patience is how long a hold goes on although no record probes, but such that failed as probes: a
// minute if none waits. If some wait, what runs before them hangs. If some fail again and again,
// the downstream may be away, or they fail for good. Lanes that are paused, or cannot start, may
// have records that wait; beside a free lane they do not keep its retries from running. A process
// without lanes may get some, after a rebalance.
func (e *Env) patience(held bool, maxOutage time.Duration) time.Duration {
	if !held {
		return 0
	}
	var n [Over + 1]int
	for _, l := range e.Lanes() {
		n[l.Waits()]++
	}
	switch {
	case n[Failing] > 0:
		return max(maxOutage, hanging)
	case n[Nothing]+n[Records]+n[Kept] == 0, n[Records] > 0:
		return hanging
	case n[Nothing] == 0:
		return max(maxOutage, quiet)
	}
	return quiet
}
