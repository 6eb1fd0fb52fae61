package redrive

import (
	"time"
)

// State is where a run is.
type State string

// The states of a run. Aborted and Done are final, all others unfinished.
const (
	Canary  State = "canary"  // the first letters are sent, and their outcome is awaited
	Sending State = "sending" // at the ramp's rate, then at the full one
	Waiting State = "waiting" // nothing is sent; Outcome.Waiting says why
	// all is sent, and the window is not over, or nobody could look since; then Outcome.Waiting
	// says why
	Watching State = "watching"
	Done     State = "done"
	Aborted  State = "aborted" // Outcome.Cause says why
)

// Finished reports whether a run in that state is over.
func (s State) Finished() bool { return s == Done || s == Aborted }

// Outcome is what is known of a run. While a process has it, it finds out that somebody
// sets a group's offset by hand, and no letter that was passed so is called succeeded;
// but for one that is set while the group is stopped, and from which its consumer
// starts and commits, all within the second between two looks, or while looks fail. One
// that is set past letters while no process has the run can't be told from one that
// the group's members committed either: these count as succeeded.
type Outcome struct {
	// Topic is the dead-letter topic, ID the run's.
	Topic, ID string
	// State is where it is. Waiting says what it waits for, Cause why it was aborted.
	State          State
	Waiting, Cause string
	// By and Why are the operator's words.
	By, Why string
	// Owner says which process has it, or had it last; Heartbeat is when that last said so.
	Owner     string
	Heartbeat time.Time
	// Claim tells that process from others that had the run before or after it, for [IfClaim].
	Claim string
	// Started and Ended are the times of the claim and of the final state. Stopped is when its
	// process left it to be resumed or aborted, as it says itself; one that crashed says nothing.
	// It is zero while nobody has stopped it.
	Started, Stopped, Ended time.Time
	// Counts say what became of its letters.
	Counts Counts
}

// Event tells how a run goes on.
type Event struct {
	Outcome
	// Rate is the records a second that it may send now; negative without a limit.
	Rate float64
	// Message is something to tell the operator, once; empty for mere progress.
	Message string
}
