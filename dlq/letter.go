package dlq

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Letter is a record of a dead-letter topic.
type Letter struct {
	// Record is the letter as it was read. The caller may keep it, but it keeps the whole fetch
	// that it came with in memory.
	Record *kgo.Record
	// Meta is the content of its headers.
	Meta headers.Meta
	// MetaErr is a *headers.FieldError if the headers are broken; then Meta has the fields that
	// could be read. It is also set if the reason is missing, as in a record that siding did not
	// write and that is of no known [Dialect].
	MetaErr error
	// Dialect is the name of the [Dialect] by which another program wrote the letter, and by which
	// Meta was read; empty if siding wrote it, or none is known. Meta.Reason is empty then, and a
	// partition or an offset of Meta.Original that the letter does not name is -1.
	Dialect string
	// State is the letter's state: that of its entry, or [Duplicate] if it is the copy of an
	// earlier letter. It is empty if there is no entry. [Read] does not set it.
	State State
	// CopyOf is the offset, in the same partition, of the original letter of a [Duplicate]. Only
	// [Ledger.Letters] with [WithCopies] sets it.
	CopyOf int64
	// Redacted says that parts of the record are hidden: it is for people and for tests, and
	// [Import] refuses it. [ReadExport] sets it.
	Redacted bool
}

// Damaged reports whether one of siding's headers is broken, or one of the letter's dialect. A
// record of neither is not damaged.
func (l *Letter) Damaged() bool { return damaged(l.MetaErr) }

func damaged(err error) bool {
	field, broken := errors.AsType[*headers.FieldError](err)
	return broken && !(field.Key == headers.FailureReason && errors.Is(field, headers.ErrMissing))
}

// FailedAt returns when the record last failed, by its headers. Without that header it returns when
// the letter was written.
func (l *Letter) FailedAt() time.Time {
	if l.Meta.FailedAt.IsZero() {
		return l.Record.Timestamp
	}
	return l.Meta.FailedAt
}

// Own returns the letter as siding's own headers describe it, without its dialect.
func (l *Letter) Own() *Letter {
	if l.Dialect == "" {
		return l
	}
	own := newLetter(l.Record, nil)
	own.State, own.CopyOf, own.Redacted = l.State, l.CopyOf, l.Redacted
	return own
}

func newLetter(r *kgo.Record, known *Dialects) *Letter {
	m, err := headers.Parse(r.Headers)
	l := &Letter{Record: r, Meta: m, MetaErr: err}
	if m.Reason != "" {
		return l
	}
	if d := known.of(r.Headers); d != nil && m.Group == "" && m.Original.Topic == "" {
		f := d.read(r)
		f.fill(&l.Meta)
		l.Dialect = d.Name
		if err == nil && f.err != nil {
			l.MetaErr = f.err
		}
	} else if err == nil {
		l.MetaErr = &headers.FieldError{Key: headers.FailureReason, Err: headers.ErrMissing}
	}
	return l
}
