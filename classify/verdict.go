package classify

import (
	"strconv"
	"time"
)

// Verdict says what to do with a record whose handler failed.
type Verdict uint8

const (
	// VerdictTerminal gives the record up: another try would fail the same
	// way. It is the zero value, since an unknown error is usually a bug.
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

// known maps a verdict that no constant names to the safe one.
func (v Verdict) known() Verdict {
	if v > VerdictDiscard {
		return VerdictTerminal
	}
	return v
}

// Retryable marks err as worth another try. The message stays, and errors.Is
// and errors.As see err. Where marks are nested the outermost counts.
// Retryable(nil) is nil.
func Retryable(err error) error { return mark(err, VerdictRetry, 0) }

// Terminal marks err as final: the record is not tried again. Otherwise it is
// as [Retryable].
func Terminal(err error) error { return mark(err, VerdictTerminal, 0) }

// Discard marks the record as one to drop, counted and logged, instead of
// dead-lettering it. Otherwise it is as [Retryable].
func Discard(err error) error { return mark(err, VerdictDiscard, 0) }

// RetryAfter marks err as worth another try, though not before d has passed.
// d is the least wait and no replacement of the backoff: a consumer waits for as
// long as its schedule says where that is longer, and spreads records that ask
// for the same. A d of zero or less is [Retryable]. Where a verdict further out
// is retry as well, d still counts; where it is another one, d is ignored.
func RetryAfter(err error, d time.Duration) error {
	return mark(err, VerdictRetry, max(d, 0))
}

// As names the class of err and leaves the verdict to what else is known about
// it. Characters that a class can't hold become '_' (see [CleanClass]); an
// empty class names nothing. Where names are nested the outermost counts.
// As(nil, class) is nil.
func As(err error, class string) error {
	if err == nil {
		return nil
	}
	return &namedError{err: err, class: CleanClass(class)}
}

// Undecodable marks err as that of a decoder, which a consumer runs on a payload before the handler's
// own work. It says nothing of the verdict where err or a rule does, or where err is plainly an outage
// of something that the decoder needs (a schema registry, say): what a built-in rule calls worth
// another try, save for an io.EOF or io.ErrUnexpectedEOF of its own, with which a payload ends that is
// cut short. The class is that of the outage then. The rest is terminal, with class [ClassDecode].
// A timeout is decode.timeout and a panic decode.panic.<type>, so that they are told from the
// handler's own. The message begins with "decode: ". Undecodable(nil) is nil.
func Undecodable(err error) error {
	if err == nil {
		return nil
	}
	return &decodeError{err: err}
}

// UnsupportedVersion marks a record whose schema is of a version that this program does not know, so
// that a later one may have it brought back. It is terminal, and its class is
// [ClassUnsupportedVersion]. Otherwise it is as [Terminal].
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

// markedError is the handler's word on the verdict, and on more where it says so.
type markedError struct {
	err     error
	verdict Verdict
	after   time.Duration
	class   string
	kind    Kind
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }

// namedError is the handler's word on the class.
type namedError struct {
	err   error
	class string
}

func (e *namedError) Error() string { return e.err.Error() }
func (e *namedError) Unwrap() error { return e.err }

// decodeError is that of a decoder.
type decodeError struct{ err error }

func (e *decodeError) Error() string { return "decode: " + e.err.Error() }
func (e *decodeError) Unwrap() error { return e.err }
