package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause that a context ends with on Ctrl-C.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels, with errInterrupted. The second one ends the
// process at once, as if nobody had listened. stop gives the signals back.
func interruptible(parent context.Context, words io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-signals:
			// Given back before the word is out: whoever reads it may press again at once.
			signal.Stop(signals)
			fmt.Fprintln(words, "\nstopping; once more ends at once")
			cancel(errInterrupted)
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
