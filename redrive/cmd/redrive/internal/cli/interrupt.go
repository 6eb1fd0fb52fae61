package cli

// Handles Ctrl-C, once and twice.

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

// ErrInterrupted is the cause of a context that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted")

// together is the time in which several signals count as one: coreutils' timeout sends one to the
// process and one to its group.
var together = 500 * time.Millisecond

// OutlivePipes makes a write to a pipe without a reader an error instead of the end of the process.
// Without it `redrive run … 2>&1 | head` kills a run like a crash. Processes that this one starts
// have the signal as usual.
func OutlivePipes() { signal.Notify(broken, syscall.SIGPIPE) }

// broken gets the signals of broken pipes, which no code reads. The signals of a process reach no
// channel that was made in virtual time.
var broken = make(chan os.Signal, 1)

// Interruptible returns a context that the first Ctrl-C cancels, with the cause ErrInterrupted.
// SIGTERM does the same, and SIGHUP unless the process ignores it, as under nohup. A signal within
// half a second counts as the same one; a later signal ends the process at once. stop releases the
// signals.
func Interruptible(parent context.Context, words io.Writer) (ctx context.Context, stop func()) {
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
			cancel(ErrInterrupted)
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}
