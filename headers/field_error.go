package headers

import (
	"errors"
	"strconv"

	"github.com/sidingkafka/siding/internal/reserved"
)

// The reasons of a FieldError, for errors.Is.
var (
	ErrMissing   = errors.New("missing")
	ErrDuplicate = errors.New("duplicated")
	ErrSyntax    = reserved.ErrSyntax
	ErrRange     = reserved.ErrRange
)

// FieldError is the error of one invalid header, or field of dlq-meta.
type FieldError struct {
	// Key is the header's key.
	Key string
	// Value is the header's value, cut to 64 bytes; empty if there is none. Of a field it is
	// "name=value", or the name if the field is missing.
	Value string
	// Err is the reason: ErrMissing, ErrDuplicate, ErrSyntax or ErrRange, by errors.Is.
	Err error
}

// Error returns the key, the value if there is one, and the reason.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return "header " + e.Key + ": " + e.Err.Error()
	}
	return "header " + e.Key + ": " + strconv.Quote(e.Value) + " is " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }
