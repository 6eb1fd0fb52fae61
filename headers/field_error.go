package headers

import (
	"errors"
	"strconv"
)

// What can be wrong with a header, for errors.Is.
var (
	ErrMissing   = errors.New("missing")
	ErrDuplicate = errors.New("there more than once")
	ErrSyntax    = errors.New("not in the format of this header")
	ErrRange     = errors.New("out of bounds")
)

// FieldError is one header that can't be believed.
type FieldError struct {
	// Key is the header's.
	Key string
	// Value is what was found, cut to 64 bytes; empty where nothing was.
	Value string
	// Err says why, and is one of ErrMissing, ErrDuplicate, ErrSyntax and
	// ErrRange by errors.Is.
	Err error
}

// Error returns the key, the value where there is one, and the reason.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return "header " + e.Key + ": " + e.Err.Error()
	}
	return "header " + e.Key + ": " + strconv.Quote(e.Value) + " is " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }
