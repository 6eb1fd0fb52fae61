package redrive

import (
	"fmt"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Selection selects letters of a dead-letter topic, their target and their edit.
type Selection struct {
	// Topic is the dead-letter topic.
	Topic string
	// Filter selects among the topic's open letters; the zero value selects all.
	Filter dlq.Filter
	// Target is where the letters go.
	Target Target
	// MaxRedrives is how often one record may be redriven, over all runs; 3 by default, without a
	// limit when negative. A record that reached the limit is skipped.
	MaxRedrives int
	// MaxAttempts is the bound of the deliveries of each copy, in place of the policy's, which it
	// may exceed: a copy that fails as often is a dead letter again. It is at most
	// [headers.MaxRedriveAttempts]. Zero means the policy's bound; a negative number is an error.
	// Consumers older than this setting ignore it. Without retry topics there is one attempt.
	MaxAttempts int
	// Edit changes the copies; the zero value changes nothing.
	Edit Edit
}

const defaultMaxRedrives = 3

func (s *Selection) validate() error {
	if s.MaxAttempts < 0 || s.MaxAttempts > headers.MaxRedriveAttempts {
		return fmt.Errorf("MaxAttempts is %d: at least 1 and at most %d, or zero for the bound of the consumer's policy", s.MaxAttempts, headers.MaxRedriveAttempts)
	}
	return s.Edit.validate()
}

// Target is the destination of redriven letters. The zero value is the failing group's first retry
// topic, due at once: only that group sees the records again.
type Target struct {
	// Topic names another target: the source topic, a topic that is no sibling, or another retry
	// topic of the source that the failing groups read. All groups that read the target see the
	// records. On a topic that is neither the source nor a retry topic, the outcomes stay unknown
	// ([Counts.Unfollowed]).
	Topic string `json:"topic,omitempty"`
	// Wait makes a run wait for members if the group has none. Without it the run is refused.
	Wait bool `json:"wait,omitempty"`
	// Force allows a redrive to a compacted target, and to a source whose retry topics seem to have
	// other names than Config.Naming gives.
	Force bool `json:"force,omitempty"`
	// KeepTimestamp gives the copies the timestamp of the original record. It applies only if Topic
	// is set.
	KeepTimestamp bool `json:"keepTimestamp,omitempty"`
}
