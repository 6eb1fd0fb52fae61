package redrive

import (
	"maps"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// Counts counts the letters of a run by their outcomes.
type Counts struct {
	// Selected, Sent and Succeeded count letters that were planned, sent, and handled with success.
	Selected  int64 `json:"selected"`
	Sent      int64 `json:"sent"`
	Succeeded int64 `json:"succeeded"`
	// Failed counts letters whose records are in the dead-letter topic again. FailedByClass splits
	// the number by the class of the last error: the first 200 classes, and "other classes".
	Failed        int64            `json:"failed"`
	FailedByClass map[string]int64 `json:"failedByClass,omitempty"`
	// Discarded counts letters that the handler, its policy or an operator discarded, also those
	// that were reopened after the run's end.
	Discarded int64 `json:"discarded"`
	// Retrying counts letters that failed again and are in a retry topic. It is a part of Pending.
	Retrying int64 `json:"retrying"`
	// Pending counts letters that were sent, are followed, and have no outcome yet.
	Pending int64 `json:"pending"`
	// Unknown counts letters whose outcome cannot be known any more: an offset was reset, or the
	// copy expired.
	Unknown int64 `json:"unknown"`
	// Unfollowed counts letters that were sent to a target on which no outcome can be known. The
	// target is neither the source nor a retry topic, or it is the source and the letter names no
	// group. The ledger records this, which resolves them, so no run sends them again. A letter
	// that is a dead letter again while the run watches counts as failed instead.
	Unfollowed int64 `json:"unfollowed,omitempty"`
	// Skipped counts, by reason, letters that were selected and not sent. They stay open, except
	// those that expired or were resolved meanwhile.
	Skipped map[string]int64 `json:"skipped,omitempty"`
}

// add counts the outcome of a letter.
func (c *Counts) add(e dlq.Entry) { (*inflight.Counts)(c).Add(e) }

// addSkipped counts a letter that is not sent.
func (c *Counts) addSkipped(why string) { (*inflight.Counts)(c).AddSkipped(why) }

func (c Counts) clone() Counts {
	c.FailedByClass, c.Skipped = maps.Clone(c.FailedByClass), maps.Clone(c.Skipped)
	return c
}
