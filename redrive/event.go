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

// Outcome is what is known of a run.
//
// While a process has the run, letters that a group passed because its offset was set by hand do
// not count as succeeded. One case cannot be seen: the offset is set while the group is stopped,
// and its consumer starts there and commits, all between two polls, which are a second apart. An
// offset that is set while no process has the run looks like a commit of the group's members: the
// letters count as succeeded.
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

// Event reports the progress of a run.
type Event struct {
	Outcome
	// Rate is the records a second that it may send now; negative without a limit.
	Rate float64
	// Message is something to tell the operator, once; empty for mere progress.
	Message string
}
