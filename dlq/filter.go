package dlq

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Filter selects dead letters. A letter is selected if it matches every field that is set; it
// matches a list if it matches one of its values. The zero value selects all letters.
type Filter struct {
	// Classes are classes of errors. One that ends in * stands for all classes that begin with the
	// rest, so "payment.*" has payment.Declined, and "*" all letters with a class. Elsewhere in a
	// class, * is an ordinary character.
	Classes              []string
	Fingerprints, Groups []string
	Reasons              []headers.Reason
	// Dialects are names of dialects ([Letter.Dialect]), the empty one for letters that siding
	// wrote, and for those of which no dialect is known.
	Dialects []string
	// States are states of letters ([Letter.State]), the empty one for letters without an entry.
	// Only a [Ledger] knows them: for [Read] each letter has the empty state.
	States []State
	// Keys are keys of records, byte for byte. The empty string is the empty key; a record without
	// a key matches none.
	Keys []string
	// Ranges are parts of the topic. The read fetches as little as possible outside of them.
	Ranges []Range
	// Headers are headers of the record, the user's and siding's. The record must have each header
	// that is named, with one of the listed values, or with any value if the list is empty. If a
	// record has a header several times, one of them has to match.
	Headers map[string][]string
	// Since (inclusive) and Until (exclusive) bound the time of the last failure. For a letter
	// without that time, its record's timestamp counts. Zero means no bound.
	Since, Until time.Time
	// EnteredSince (inclusive) and EnteredUntil (exclusive) bound the time at which the letter came
	// into the topic: its record's timestamp. Zero means no bound.
	EnteredSince, EnteredUntil time.Time
	// Match is called last, for letters that match all other fields. Nil matches all.
	Match func(*Letter) bool
}

// Range is a part of a partition of a dead-letter topic.
type Range struct {
	Partition int32
	// From is the first offset, and Until the offset after the last. Until zero means no bound.
	From, Until int64
}

// At returns the range of one letter.
func At(partition int32, offset int64) Range { return Range{partition, offset, offset + 1} }

func (r *Range) has(partition int32, offset int64) bool {
	return r.Partition == partition && r.From <= offset && (offset < r.Until || r.Until == 0)
}

// Selects reports whether the filter selects the letter.
func (f *Filter) Selects(l *Letter) bool {
	return f.hasClass(l.Meta.Class) &&
		oneOf(f.Fingerprints, l.Meta.Fingerprint) &&
		oneOf(f.Groups, l.Meta.Group) &&
		oneOf(f.Reasons, l.Meta.Reason) &&
		oneOf(f.Dialects, l.Dialect) &&
		oneOf(f.States, l.State) &&
		(len(f.Keys) == 0 || l.Record.Key != nil && slices.Contains(f.Keys, string(l.Record.Key))) &&
		f.within(l.Record) &&
		between(f.Since, l.FailedAt(), f.Until) &&
		between(f.EnteredSince, l.Record.Timestamp, f.EnteredUntil) &&
		f.carries(l.Record.Headers) &&
		(f.Match == nil || f.Match(l))
}

// all reports whether the filter is the zero value, which selects all letters.
func (f *Filter) all() bool {
	return len(f.Classes)+len(f.Fingerprints)+len(f.Groups)+len(f.Reasons)+len(f.Dialects)+len(f.States)+len(f.Keys)+len(f.Ranges)+len(f.Headers) == 0 &&
		f.Since.IsZero() && f.Until.IsZero() && f.EnteredSince.IsZero() && f.EnteredUntil.IsZero() && f.Match == nil
}

func (f *Filter) within(r *kgo.Record) bool {
	return len(f.Ranges) == 0 || slices.ContainsFunc(f.Ranges, func(s Range) bool { return s.has(r.Partition, r.Offset) })
}

func (f *Filter) hasClass(class string) bool {
	return len(f.Classes) == 0 || slices.ContainsFunc(f.Classes, func(c string) bool {
		prefix, all := strings.CutSuffix(c, "*")
		return c == class || all && class != "" && strings.HasPrefix(class, prefix)
	})
}

// between reports whether at is not before since, and before until. Zero means no bound.
func between(since, at, until time.Time) bool {
	return (since.IsZero() || !at.Before(since)) && (until.IsZero() || at.Before(until))
}

func (f *Filter) carries(h []kgo.RecordHeader) bool {
	for key, values := range f.Headers {
		found := false
		for k, value := range headers.Values(h) {
			found = found || k == key && oneOf(values, string(value))
		}
		if !found {
			return false
		}
	}
	return true
}

// narrow reduces left to the filter's ranges. It removes partitions without a range, and shortens
// the others to the hull of their ranges.
func (f *Filter) narrow(left map[int32]span) {
	if len(f.Ranges) == 0 {
		return
	}
	maps.DeleteFunc(left, func(p int32, _ span) bool {
		return !slices.ContainsFunc(f.Ranges, func(r Range) bool { return r.Partition == p })
	})
	for p, s := range left {
		from, until := s.end, s.at
		for _, r := range f.Ranges {
			if r.Partition == p {
				from = min(from, r.From)
				if r.Until == 0 {
					until = s.end
				}
				until = max(until, r.Until)
			}
		}
		s.at, s.end = max(s.at, from), min(s.end, until)
		left[p] = s
	}
}

func oneOf[T comparable](any []T, x T) bool { return len(any) == 0 || slices.Contains(any, x) }
