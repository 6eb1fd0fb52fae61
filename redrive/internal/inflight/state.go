package inflight

import (
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// letterState is the state of a letter beyond being sent.
type letterState struct {
	group string // the failing group; empty if unknown
	// position of the last copy; empty while that is the copy on the target
	at        headers.Position
	hops      int    // of that copy
	class     string // of its last failure; empty before the first
	deadAt    bool   // it is a dead letter again
	discarded bool   // the consumer reported that it discarded the letter
}

// stage is the progress of a letter.
type stage uint8

const (
	fresh    stage = iota // on its target, as far as is known
	retrying              // in a retry topic, after it failed again
	landed                // a dead letter again, to be recorded
	stages
)

func (fl *letterState) stage() stage {
	switch {
	case fl == nil:
		return fresh
	case fl.deadAt:
		return landed
	case fl.class != "":
		return retrying
	}
	return fresh
}

// passed returns the state of a letter whose group passed it so.
func (fl *letterState) passed(how Progress) dlq.State {
	switch {
	case fl != nil && fl.discarded:
		return dlq.Discarded
	case how == Unknown:
		return dlq.Unknown
	}
	return dlq.Succeeded
}

// Progress is the relation of a group's committed offset to a position.
type Progress uint8

// The relations.
const (
	Behind  Progress = iota // the group has not passed the position
	Past                    // the group has passed it
	Unknown                 // it cannot be known whether the group ran the record
)
