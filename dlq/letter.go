package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Letter is a record on a dead-letter topic.
type Letter struct {
	// Record is the letter as it stands there. It is the reader's to keep, but
	// one that is kept keeps the whole fetch in memory that it came with.
	Record *kgo.Record
	// Meta is what its headers say.
	Meta headers.Meta
	// MetaErr says what is wrong with them, as a *headers.FieldError, and then
	// Meta has what could be read. A record that siding did not write lacks the
	// reason, so it is an error too.
	MetaErr error
	// State is what became of it, and [Duplicate] where it is the copy of a
	// letter before it; empty if nothing did, and after [Read], which does not
	// look.
	State State
	// CopyOf is the offset, in the same partition, of the letter that a
	// [Duplicate] is the copy of, set by [Ledger.Letters] with
	// [WithCopies] only.
	CopyOf int64
}

// FailedAt is when the record failed last: as its headers say, or else when the
// letter was written.
func (l *Letter) FailedAt() time.Time {
	if l.Meta.FailedAt.IsZero() {
		return l.Record.Timestamp
	}
	return l.Meta.FailedAt
}

func newLetter(r *kgo.Record) *Letter {
	m, err := headers.Parse(r.Headers)
	if err == nil && m.Reason == "" {
		err = &headers.FieldError{Key: headers.FailureReason, Err: headers.ErrMissing}
	}
	return &Letter{Record: r, Meta: m, MetaErr: err}
}
