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
	exitReappeared = 3 // a run was aborted because its records failed again
	exitRefused    = 4 // it could be done, and should not
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
	case isA[*redrive.ReappearedError](err):
		return exitReappeared
	case isA[*refusedError](err), isA[*redrive.RefusedError](err):
		return exitRefused
	}
	return exitError
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// interrupted tells an error that Ctrl-C caused from others.
func interrupted(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errInterrupted)
}
