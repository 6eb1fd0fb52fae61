package redrive

import (
	"maps"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// Counts say what became of the letters of a run.
type Counts struct {
	Selected  int64 `json:"selected"`
	Sent      int64 `json:"sent"`
	Succeeded int64 `json:"succeeded"`
	// Failed are those that came back to the dead-letter topic. FailedByClass has them by the class
	// of their last error.
	Failed        int64            `json:"failed"`
	FailedByClass map[string]int64 `json:"failedByClass,omitempty"`
	Discarded     int64            `json:"discarded"`
	// Retrying are those that failed again and wait in a retry topic, a part of Pending.
	Retrying int64 `json:"retrying"`
	// Pending are those that were sent, are followed, and have no outcome yet.
	Pending int64 `json:"pending"`
	// Unknown are those of which nothing can be known: an offset was reset, or their target
	// expired.
	Unknown int64 `json:"unknown"`
	// Unfollowed are those that were sent where their outcome cannot be known: to another topic
	// than the source and its retry topics, or to the source without that they say whose they are.
	// The ledger says so of them, which resolves them: no run sends them again.
	Unfollowed int64 `json:"unfollowed,omitempty"`
	// Skipped were selected and not sent, by reason: they stay open, but for "expired".
	Skipped map[string]int64 `json:"skipped,omitempty"`
}

// add counts what became of a letter.
func (c *Counts) add(e dlq.Entry) { (*inflight.Counts)(c).Add(e) }

// addSkipped counts a letter that is not sent.
func (c *Counts) addSkipped(why string) { (*inflight.Counts)(c).AddSkipped(why) }

func (c Counts) clone() Counts {
	c.FailedByClass, c.Skipped = maps.Clone(c.FailedByClass), maps.Clone(c.Skipped)
	return c
}

// of is the count of a state that is no failure.
func (c *Counts) of(s dlq.State) *int64 {
	if s == dlq.Succeeded {
		return &c.Succeeded
	}
	return &c.Unknown
}
