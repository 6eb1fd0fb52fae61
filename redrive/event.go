package redrive

// The states and outcomes of a run, as its caller sees them.

import (
	"time"

	"github.com/sidingkafka/siding/internal/runstate"
)

// State is the phase of a run.
type State string

// The states of a run. Done and Aborted are final; in all others the run is unfinished.
const (
	// the first letters are sent; the run awaits their outcomes
	Canary State = "canary"
	// the other letters are sent, at the ramp's rate and then at the full rate
	Sending State = "sending"
	// the run sends nothing for the reason in Outcome.Waiting
	Waiting State = "waiting"
	// all letters are sent, and the window is not over. Outcome.Waiting has the reason if the run
	// cannot watch.
	Watching State = "watching"
	Done     State = runstate.Done
	// the run ended early for the reason in Outcome.Cause
	Aborted State = runstate.Aborted
)

// Finished reports whether s is final.
func (s State) Finished() bool { return runstate.Finished(string(s)) }

// Outcome is the state and the progress of a run. Its JSON is a format: later versions may add
// fields, and neither rename nor remove one. Durations of the pace are in nanoseconds.
//
// While a process owns the run, it detects group offsets that were set by hand, and does not count
// the letters that they skip as succeeded. It cannot detect an offset that is set while the group
// is stopped, if the consumer restarts and commits from it between two polls (one second). An
// offset that is set while no process owns the run looks like a commit of the group, so the skipped
// letters count as succeeded.
type Outcome struct {
	// Topic is the dead-letter topic, and ID the id of the run.
	Topic string `json:"topic"`
	ID    string `json:"id"`
	// State is the run's phase. Waiting is the reason for a wait, and Cause the reason for an
	// abort.
	State   State  `json:"state"`
	Waiting string `json:"waiting,omitempty"`
	Cause   string `json:"cause,omitempty"`
	// By and Why are the operator's name and reason.
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Owner names the process that owns the run, or owned it last. Heartbeat is the time of its
	// last heartbeat.
	Owner     string    `json:"owner"`
	Heartbeat time.Time `json:"heartbeatAt"`
	// SilentAfter is the age of Heartbeat from which the run seems to have no process: 20 s, or
	// more if letters take longer on the connection of its process.
	SilentAfter time.Duration `json:"silentAfter"`
	// Claim identifies the process's claim, for [IfClaim]. Each claim of a run has another value.
	Claim string `json:"claim"`
	// Started is the time of the first claim, and Ended the time of the final state. Stopped is the
	// time at which the process recorded that it left the run unfinished. It is zero while the run
	// is owned, and after a crash.
	Started time.Time `json:"startedAt"`
	Stopped time.Time `json:"stoppedAt,omitzero"`
	Ended   time.Time `json:"endedAt,omitzero"`
	// Resumed are the last 20 times at which a process resumed the run, the oldest first.
	Resumed []Resumption `json:"resumed,omitempty"`
	// Pace is the pace of the run, as it was last recorded.
	Pace Pace `json:"pace"`
	// RampBegan is when the rate began to rise, after the canary. It is zero before, and a resumed
	// run begins its ramp anew. RateAt has the rate.
	RampBegan time.Time `json:"rampBeganAt,omitzero"`
	// WindowEnds is the end of the window after the last letter. It is zero unless the state is
	// Watching.
	WindowEnds time.Time `json:"windowEndsAt,omitzero"`
	// Counts counts the run's letters by their outcomes.
	Counts Counts `json:"counts"`
}

// Resumption is that a process resumed a run. Owner names the process, as in [Outcome].
type Resumption struct {
	At      time.Time    `json:"at"`
	Owner   string       `json:"owner"`
	Changed []PaceChange `json:"changed,omitempty"` // fields of the pace that it replaced
}

// mostResumed bounds Outcome.Resumed, which is in each record of a run.
const mostResumed = 20

// resumedBy adds a resumption.
func resumedBy(all []Resumption, by Resumption) []Resumption {
	all = append(all, by)
	return all[max(0, len(all)-mostResumed):]
}

// RateAt returns the limit of the run at a time, in records a second: what its ramp has risen to.
// It is negative without a limit. The time is by the clock of the run's owner, as Heartbeat is.
func (o *Outcome) RateAt(at time.Time) float64 {
	if o.RampBegan.IsZero() {
		at = o.RampBegan
	}
	return o.Pace.rateAt(at.Sub(o.RampBegan))
}

// Event reports the progress of a run.
type Event struct {
	Outcome
	// Rate is the current limit in records a second; negative without a limit.
	Rate float64
	// Message is a notice for the operator, sent once. It is empty in an event that only reports
	// progress.
	Message string
}
