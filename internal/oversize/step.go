// Package oversize decides what to write in place of a copy that is too large for its topic. It
// sends nothing: package consumer sends for its lanes, package dlq for all others.
//
// A refusal concerns a whole batch: kgo fails all copies that it holds for the partition, and so
// does the broker. A copy that shared its batch is therefore sent again alone first. If it is
// refused alone, it drops its least important part, one [Step] at a time, and is sent alone again.
package oversize

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// Refused reports whether err means that the batch was too large. The client counts bytes before
// compression; the broker applies its topic's max.message.bytes or segment.bytes.
func Refused(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// Step is how much of a copy is dropped. Each step starts from the original copy: a letter without
// its value has its complete headers again.
type Step uint8

// The steps, in their order.
const (
	Whole   Step = iota
	Shrunk       // without history, stack and message
	Omitted      // without the value
	Bare         // without any of these
)

// Next returns the first step after s that makes the copy smaller, for a copy that was refused
// alone at s. omit reports whether the value may be dropped, as it can be found elsewhere. more is
// false if nothing is left to drop.
func (s Step) Next(h []kgo.RecordHeader, value []byte, omit bool) (next Step, more bool) {
	for next := s + 1; next <= Bare; next++ {
		switch {
		case next != Omitted && !reserved.Any(h, shrinks):
		case next >= Omitted && (!omit || len(value) == 0):
		default:
			return next, true
		}
	}
	return s, false
}

// Of returns the headers and the value of a copy at step s. It does not change its arguments.
func (s Step) Of(h []kgo.RecordHeader, value []byte) ([]kgo.RecordHeader, []byte) {
	if s == Shrunk || s == Bare {
		h = reserved.Without(h, shrinks)
	}
	if s < Omitted {
		return h, value
	}
	return reserved.With(h, reserved.ValueOmitted, "true"), nil
}

// Omits reports whether a copy at step s is written without its value.
func (s Step) Omits() bool { return s >= Omitted }

// Letter returns the headers of the dead letter of a copy that is too large for a retry topic.
func Letter(h []kgo.RecordHeader) []kgo.RecordHeader {
	h = reserved.Without(h, reserved.SetOf(reserved.NotBefore, reserved.Held))
	return reserved.With(h, reserved.FailureReason, string(headers.ReasonTooLarge))
}

// shrinks are the keys of what [headers.Meta.Shrink] drops. It goes by the keys alone: a record
// with invalid headers has to fit too, and its other headers stay as they are.
var shrinks = reserved.SetOf(reserved.History, reserved.ErrorStack, reserved.ErrorMessage)
