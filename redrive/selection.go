package redrive

import (
	"github.com/sidingkafka/siding/dlq"
)

// Selection says which letters of which dead-letter topic are redriven, where to, and how they are
// changed.
type Selection struct {
	// Topic is the dead-letter topic.
	Topic string
	// Filter selects among its open letters; zero selects all.
	Filter dlq.Filter
	// Target is where they go.
	Target Target
	// MaxRedrives is how often a record is redriven, over all runs; 3 by default, any number of
	// times when negative. A record that was redriven as often stays.
	MaxRedrives int
	// Edit changes them on the way.
	Edit Edit
}

const defaultMaxRedrives = 3

// Target is where letters are redriven to. The zero value is the failing group's first retry topic,
// due at once: only that group sees the records again.
type Target struct {
	// Topic is another target: the source topic, or any that is no sibling. All groups that read it
	// will see the records; on another topic than the source the outcomes are not known
	// ([Counts.Unfollowed]). It may as well be a retry topic of the source that the failing
	// groups read, another one than their first.
	Topic string `json:"topic,omitempty"`
	// Wait lets a run wait for a group without members instead of refusing.
	Wait bool `json:"wait,omitempty"`
	// Force brings records back to a compacted source, or to one whose retry topics seem to be
	// named otherwise than Config.Naming says.
	Force bool `json:"force,omitempty"`
	// KeepTimestamp gives the copies the timestamp of the record as it was first read, on a target
	// that is named.
	KeepTimestamp bool `json:"keepTimestamp,omitempty"`
}
