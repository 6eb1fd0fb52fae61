package forward

import (
	"errors"
	"fmt"
)

// Outcome is the result of a copy's promise.
type Outcome uint8

// The outcomes of a copy.
const (
	done     Outcome = iota // safe, abandoned by its lane, or tried again unreported
	refused                 // to be tried again later
	queued                  // to be sent alone
	Diverted                // too large for a retry topic: a dead letter now, to be sent alone
	Omitted                 // safe, without its value
	Dropped                 // too large for the dead-letter topic: the record is discarded
	Halted                  // too large for the dead-letter topic: the lane halts on the record
	NoteLost                // no ledger accepts the note: its record is finished without it
)

// errUnacknowledged is why copies hold up a lane that none refused.
var errUnacknowledged = errors.New("copies are not acknowledged: does every sibling have a leader and enough in-sync replicas?")

// refusal is why a copy to a topic was refused.
func refusal(topic string, why error) error { return fmt.Errorf("%s: %w", topic, why) }
