package cli

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

// Exit codes. They are a promise to scripts.
const (
	ExitDone  = 0
	ExitError = 1 // something went wrong; the message has the remedy
	// the command line, a variable or the configuration file is wrong; nothing was done
	ExitUsage       = 2
	ExitFailedAgain = 3 // records of a run failed again, whether the run aborted itself or ended
	ExitRefused     = 4 // the command would do harm as things are; nothing was done
	ExitPending     = 5 // a run ended, no record failed again, and some have no outcome yet
	// a run ended, no record failed again, and it sent none, or left some open that it could not
	// send
	ExitNotSent = 6
	ExitLacking = 7 // a feature of siding does not work on the cluster, or not for the user
)

// A codedError is an error whose exit code is known.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// Coded gives an error its exit code. Nil stays nil.
func Coded(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// Usage marks an error of the command line, a variable or the configuration file.
func Usage(err error) error { return Coded(ExitUsage, err) }

// Refuse ends a verb that would do harm as things are. The text has what would have to change.
func Refuse(format string, args ...any) error { return Coded(ExitRefused, fmt.Errorf(format, args...)) }

// ExitCode is the only place where errors become exit codes.
func ExitCode(err error) int {
	known, ok := errors.AsType[*codedError](err)
	switch {
	case err == nil:
		return ExitDone
	case ok:
		return known.code
	case IsA[*redrive.FailedAgainError](err):
		return ExitFailedAgain
	case IsA[*redrive.RefusedError](err):
		return ExitRefused
	}
	return ExitError
}

// IsA reports whether an error is, or wraps, one of a type.
func IsA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// WithoutGuess removes the client's guess from an error: that TLS or SASL may be missing does not
// help once a broker has answered. Before that, [connect.Cluster.Reach] has a better hint.
func WithoutGuess(text string) string {
	return guess.ReplaceAllString(text, "the broker hung up at once")
}

var guess = regexp.MustCompile(`broker closed the connection immediately [^:]*: is (TLS|SASL) [^?]*\?`)

// A resourceError is an error about one of the cluster's resources. A missing permission is a
// *redrive.DeniedError instead, whose text has the command that grants it.
type resourceError struct{ error }

// OnTopic adds to an error its topic and the operation on it that needs a permission. Nil stays
// nil.
func OnTopic(op, topic string, err error) error { return OnResource(op, "topic", topic, err) }

// OnResource is OnTopic for a resource of any kind.
func OnResource(op, resource, name string, err error) error {
	if err == nil || aboutResource(err) {
		return err
	}
	if denied := permission.Denied(op, resource, name, err); IsA[*redrive.DeniedError](denied) {
		return denied
	}
	return &resourceError{fmt.Errorf("%s %s: %w", resource, name, err)}
}

// aboutResource reports whether an error already names its resource.
func aboutResource(err error) bool {
	return IsA[*resourceError](err) || IsA[*redrive.DeniedError](err)
}

func (e *resourceError) Unwrap() error { return e.error }
