package classify

import (
	"fmt"
	"strconv"
	"time"
)

// Verdict decides what happens to a record whose handler failed.
type Verdict uint8

const (
	// VerdictTerminal ends the record's retries: another attempt would fail the same way. It is the
	// zero value, since an unknown error is usually a bug.
	VerdictTerminal Verdict = iota
	// VerdictRetry tries the record again later.
	VerdictRetry
	// VerdictDiscard drops the record on purpose, counted and logged.
	VerdictDiscard
)

// String returns "terminal", "retry" or "discard".
func (v Verdict) String() string {
	switch v {
	case VerdictTerminal:
		return "terminal"
	case VerdictRetry:
		return "retry"
	case VerdictDiscard:
		return "discard"
	}
	return "verdict(" + strconv.Itoa(int(v)) + ")"
}

// known maps an undefined verdict to the safe one.
func (v Verdict) known() Verdict {
	if v > VerdictDiscard {
		return VerdictTerminal
	}
	return v
}

// problem says that the verdict of a field is none; it is empty for the others.
func (v Verdict) problem(field string) string {
	if v == v.known() {
		return ""
	}
	return fmt.Sprintf("%s is Verdict(%d): VerdictTerminal, VerdictRetry or VerdictDiscard", field, uint8(v))
}

// Retryable marks err as worth another attempt. The message stays the same, and errors.Is and
// errors.As see err. The outermost of nested marks counts. Retryable(nil) is nil.
func Retryable(err error) error { return mark(err, VerdictRetry, 0) }

// Terminal marks err as final: the record is not tried again. In all else it behaves like
// [Retryable].
func Terminal(err error) error { return mark(err, VerdictTerminal, 0) }

// Discard marks the record to be dropped, counted and logged, instead of dead-lettered. In all else
// it behaves like [Retryable].
func Discard(err error) error { return mark(err, VerdictDiscard, 0) }

// RetryAfter marks err as worth another attempt, but not before d has passed. d is the least wait
// and does not replace the backoff: a longer wait of the consumer's schedule counts, and records
// with the same d are spread. If d is zero or less it is [Retryable]. Inside another mark, d counts
// if the outer verdict is retry too, and is ignored otherwise.
func RetryAfter(err error, d time.Duration) error {
	return mark(err, VerdictRetry, max(d, 0))
}

// As sets the class of err and leaves the verdict to the other sources. Characters that a class
// cannot hold become '_' (see [CleanClass]); an empty class has no effect. The outermost of nested
// names counts. As(nil, class) is nil.
func As(err error, class string) error {
	if err == nil {
		return nil
	}
	return &namedError{err: err, class: CleanClass(class)}
}

// Undecodable marks err as the error of a decoder, which a consumer calls before the handler's own
// work. If err or a rule has a verdict, that counts.
//
// Otherwise err may plainly be an outage of something that the decoder needs, such as a schema
// registry: a built-in rule calls it retryable. It is retried then, with the class of the outage.
// An io.EOF or io.ErrUnexpectedEOF of its own is no outage, since truncated payloads end with it.
//
// All else is terminal, with class [ClassDecode]. A timeout has class decode.timeout and a panic
// decode.panic.<type>, to distinguish them from the handler's. The message begins with "decode: ".
// Undecodable(nil) is nil.
func Undecodable(err error) error {
	if err == nil {
		return nil
	}
	return &decodeError{err: err}
}

// UnsupportedVersion marks a record whose schema has a version that this program does not know. A
// later version of the program may have it redriven. It is terminal, with class
// [ClassUnsupportedVersion]. In all else it behaves like [Terminal].
func UnsupportedVersion(err error) error {
	if err == nil {
		return nil
	}
	return &markedError{err: err, verdict: VerdictTerminal, class: ClassUnsupportedVersion, kind: KindUnsupportedVersion}
}

func mark(err error, v Verdict, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &markedError{err: err, verdict: v, after: after}
}

// markedError carries the handler's verdict, and its wait, class and kind if these are set.
type markedError struct {
	err     error
	verdict Verdict
	after   time.Duration
	class   string
	kind    Kind
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }

// namedError carries the class that the handler named.
type namedError struct {
	err   error
	class string
}

func (e *namedError) Error() string { return e.err.Error() }
func (e *namedError) Unwrap() error { return e.err }

// decodeError is a decoder's error.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return "decode: " + e.err.Error() }
func (e *decodeError) Unwrap() error { return e.err }
