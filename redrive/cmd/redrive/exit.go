package main

import (
	"context"
	"errors"

	"github.com/sidingkafka/siding/redrive"
)

// Exit codes. They are a promise to scripts.
const (
	exitDone       = 0
	exitError      = 1 // something went wrong; the message says what to do
	exitUsage      = 2 // the command line, a variable or the configuration file is wrong; nothing was done
	exitReappeared = 3 // records of a run failed again: it aborted itself, or is over
	exitRefused    = 4 // it could be done, and should not
	exitPending    = 5 // a run is over, none of its records failed again, and some have no outcome yet
)

// usageError is an error of what the command was given.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case isA[*usageError](err):
		return exitUsage
	case isA[*redrive.ReappearedError](err), isA[*failedError](err):
		return exitReappeared
	case isA[*pendingError](err):
		return exitPending
	case isA[*refusedError](err), isA[*redrive.RefusedError](err):
		return exitRefused
	}
	return exitError
}

// failedError says that a run is over, and that letters of it failed again.
type failedError struct{ text string }

func (e *failedError) Error() string { return e.text }

// pendingError says that a run is over, and that letters of it have no outcome yet.
type pendingError struct{ text string }

func (e *pendingError) Error() string { return e.text }

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// interrupted tells an error that Ctrl-C caused from others.
func interrupted(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errInterrupted)
}
