package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sidingkafka/siding/redrive"
)

// Exit codes. They are a promise to scripts.
const (
	exitDone  = 0
	exitError = 1 // something went wrong; the message says what to do
	// the command line, a variable or the configuration file is wrong; nothing was done
	exitUsage       = 2
	exitFailedAgain = 3 // records of a run failed again, whether the run aborted itself or ended
	exitRefused     = 4 // the command would do harm as things are; nothing was done
	exitPending     = 5 // a run ended, no record failed again, and some have no outcome yet
	// a run ended, no record failed again, and it sent none, or left some open that it could not
	// send
	exitNotSent = 6
)

// A codedError is an error whose exit code is known.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// coded gives an error its exit code. Nil stays nil.
func coded(code int, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// usage marks an error of the command line, a variable or the configuration file.
func usage(err error) error { return coded(exitUsage, err) }

// refuse ends a verb that would do harm as things are. The text says what would have to change.
func refuse(format string, args ...any) error { return coded(exitRefused, fmt.Errorf(format, args...)) }

// exitCode is the only place where errors become exit codes.
func exitCode(err error) int {
	known, ok := errors.AsType[*codedError](err)
	switch {
	case err == nil:
		return exitDone
	case ok:
		return known.code
	case isA[*redrive.FailedAgainError](err):
		return exitFailedAgain
	case isA[*redrive.RefusedError](err):
		return exitRefused
	}
	return exitError
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// withoutGuess removes the client's guess from an error: that TLS or SASL may be missing does not
// help once a broker has answered. Before that, [connect.Cluster.Reach] has a better hint.
func withoutGuess(text string) string {
	return guess.ReplaceAllString(text, "the broker hung up at once")
}

var guess = regexp.MustCompile(`broker closed the connection immediately [^:]*: is (TLS|SASL) [^?]*\?`)
