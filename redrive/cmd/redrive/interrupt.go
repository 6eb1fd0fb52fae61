package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errInterrupted is the cause that a context ends with on Ctrl-C.
var errInterrupted = errors.New("interrupted")

// together is how close signals are that mean one thing: coreutils' timeout sends two, to the process and to its group.
const together = 500 * time.Millisecond

// interruptible returns a context that the first Ctrl-C (or SIGTERM, or SIGHUP unless that is ignored, as nohup has it) cancels,
// with errInterrupted. What comes within half a second belongs to it; a later one ends the process at once, as if nobody had
// listened. stop gives the signals back where none has come.
func interruptible(parent context.Context, words io.Writer) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-signals:
			time.AfterFunc(together, func() { signal.Stop(signals) })
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
