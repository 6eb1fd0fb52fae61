package redrive

import (
	"maps"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// State is where a run is.
type State string

// The states of a run. Aborted and Done are final, all others unfinished.
const (
	Canary   State = "canary"   // the first letters are sent, and their outcome is awaited
	Sending  State = "sending"  // at the ramp's rate, then at the full one
	Waiting  State = "waiting"  // nothing is sent; Outcome.Waiting says why
	Watching State = "watching" // all is sent, and the window is not over, or nobody could look since; then Outcome.Waiting says why
	Done     State = "done"
	Aborted  State = "aborted" // Outcome.Cause says why
)

// Finished reports whether a run in that state is over.
func (s State) Finished() bool { return s == Done || s == Aborted }

// Counts say what became of the letters of a run.
type Counts struct {
	Selected  int64 `json:"selected"`
	Sent      int64 `json:"sent"`
	Succeeded int64 `json:"succeeded"`
	// Failed are those that came back to the dead-letter topic. FailedByClass has them by the class of their last error.
	Failed        int64            `json:"failed"`
	FailedByClass map[string]int64 `json:"failedByClass,omitempty"`
	Discarded     int64            `json:"discarded"`
	// Retrying are those that failed again and wait in a retry topic, a part of Pending.
	Retrying int64 `json:"retrying"`
	// Pending are those that were sent, are followed, and have no outcome yet.
	Pending int64 `json:"pending"`
	// Unknown are those of which nothing can be known: an offset was reset, or their target expired.
	Unknown int64 `json:"unknown"`
	// Unfollowed are those that were sent where nobody tells what becomes of them: to another topic than the source and its retry
	// topics, or to the source without that they say whose they are. The ledger says so of them, which settles them: no run sends them again.
	Unfollowed int64 `json:"unfollowed,omitempty"`
	// Skipped were selected and not sent, by reason: they stay open, but for "expired".
	Skipped map[string]int64 `json:"skipped,omitempty"`
}

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
	// Started and Ended are the times of the claim and of the final state. Stopped is when its process left it to be resumed or
	// aborted, as it says itself; one that crashed says nothing. It is zero while nobody has stopped it.
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

// add counts what became of a letter.
func (c *Counts) add(e dlq.Entry) { (*inflight.Counts)(c).Add(e) }

// addSkipped counts a letter that is not sent.
func (c *Counts) addSkipped(why string) { (*inflight.Counts)(c).AddSkipped(why) }

func (c Counts) clone() Counts {
	c.FailedByClass, c.Skipped = maps.Clone(c.FailedByClass), maps.Clone(c.Skipped)
	return c
}
