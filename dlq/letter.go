package dlq

import (
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
}

func newLetter(r *kgo.Record) *Letter {
	m, err := headers.Parse(r.Headers)
	if err == nil && m.Reason == "" {
		err = &headers.FieldError{Key: headers.FailureReason, Err: headers.ErrMissing}
	}
	return &Letter{Record: r, Meta: m, MetaErr: err}
}
