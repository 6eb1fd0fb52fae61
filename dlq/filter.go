package dlq

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// Filter selects dead letters. A letter is selected when it fits every field
// that is set, and one of the values of a list. The zero value selects all.
type Filter struct {
	Classes, Fingerprints, Groups []string
	Reasons                       []headers.Reason
	// Since and Until bound the time of the last failure: Since is within,
	// Until is not. A letter that does not say when it failed counts with its
	// record's timestamp. Zero is no bound.
	Since, Until time.Time
	// Match is asked last, about letters that fit the rest. Nil fits all.
	Match func(*Letter) bool
}

// Selects reports whether the filter selects the letter.
func (f *Filter) Selects(l *Letter) bool {
	return oneOf(f.Classes, l.Meta.Class) &&
		oneOf(f.Fingerprints, l.Meta.Fingerprint) &&
		oneOf(f.Groups, l.Meta.Group) &&
		oneOf(f.Reasons, l.Meta.Reason) &&
		f.during(l) &&
		(f.Match == nil || f.Match(l))
}

func (f *Filter) during(l *Letter) bool {
	at := l.Meta.FailedAt
	if at.IsZero() {
		at = l.Record.Timestamp
	}
	return (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until))
}

func oneOf[T comparable](any []T, x T) bool { return len(any) == 0 || slices.Contains(any, x) }
