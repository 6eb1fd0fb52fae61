package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// refusedError is what could be done and should not, as things are.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// refuse ends a verb with the code for what should not be done; the text says what would have to change.
func refuse(format string, args ...any) error {
	return &refusedError{fmt.Errorf(format, args...)}
}

// confirm has a count typed before something is done that nothing can undo: whoever types it has read it. Without anybody
// at stdin, and with any other answer, it is refused.
func (t *tool) confirm(ctx context.Context, what string, count int64) error {
	t.screen.Say("%s; type %d to go on:", what, count)
	answer := make(chan string, 1)
	go func() {
		// It may wait for a key until the process ends: reading from a terminal can't be cancelled.
		line, _ := bufio.NewReader(t.stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case a := <-answer:
		switch {
		case a == strconv.FormatInt(count, 10):
			return nil
		case a == "":
			return refuse("nobody typed %d, nothing was done: --yes goes on without asking", count)
		}
		return refuse("%q is not %d, nothing was done", a, count)
	}
}
