// Package oversize says what to write in place of a copy that is too large for its topic. It decides and sends nothing:
// who sends is package consumer for its lanes and package dlq for everybody else.
//
// A refusal is about a whole batch: kgo fails all that it holds for the partition, and so does the broker. So nothing
// follows from it for a copy that shared its batch; it is sent again alone. Refused alone, it gives up what is missed
// least, a [Step] at a time, and is sent alone again.
package oversize

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Refused reports whether err says that what was sent is too large: by the client, which counts bytes before
// compression, or by the broker, for its topic's max.message.bytes or segment.bytes.
func Refused(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// Step is how much of a copy was given up. What a step takes away is taken from the copy as it was first, so that a
// letter without its value has its whole story again.
type Step uint8

// The steps, in their order.
const (
	Whole   Step = iota
	Shrunk       // without history, stack and message
	Omitted      // without the value
	Bare         // without any of these
)

// Next returns the first step behind s that makes the copy smaller, for one that was refused alone at s. omit says
// whether the value may be given up: it must be found somewhere else. more is false where nothing is left to give up.
func (s Step) Next(h []kgo.RecordHeader, value []byte, omit bool) (next Step, more bool) {
	for next := s + 1; next <= Bare; next++ {
		switch {
		case next != Omitted && !slices.ContainsFunc(h, shrinks):
		case next >= Omitted && (!omit || len(value) == 0):
		default:
			return next, true
		}
	}
	return s, false
}

// Of returns what a copy with these headers and this value is written with at step s. The headers given are not changed.
func (s Step) Of(h []kgo.RecordHeader, value []byte) ([]kgo.RecordHeader, []byte) {
	if s == Shrunk || s == Bare {
		h = slices.DeleteFunc(slices.Clone(h), shrinks)
	}
	if s < Omitted {
		return h, value
	}
	return set(h, headers.ValueOmitted, "true"), nil
}

// Omits reports whether a copy at step s is written without its value.
func (s Step) Omits() bool { return s >= Omitted }

// Letter returns the headers of the dead letter of a copy that is too large for a retry topic.
func Letter(h []kgo.RecordHeader) []kgo.RecordHeader {
	h = slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return h.Key == headers.NotBefore || h.Key == headers.Held })
	return set(h, headers.FailureReason, string(headers.ReasonTooLarge))
}

// shrinks picks what [headers.Meta.Shrink] gives up. It goes by the keys alone: a record whose headers can't be believed
// has to fit as well, and the rest of it is to stay as it was found.
func shrinks(h kgo.RecordHeader) bool {
	return h.Key == headers.History || h.Key == headers.ErrorStack || h.Key == headers.ErrorMessage
}

// set returns a copy of h in which key is there once, last.
func set(h []kgo.RecordHeader, key, value string) []kgo.RecordHeader {
	h = slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return h.Key == key })
	return append(h, kgo.RecordHeader{Key: key, Value: []byte(value)})
}
