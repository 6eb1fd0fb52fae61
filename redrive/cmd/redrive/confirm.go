package main

import (
	"bufio"
	"context"
	"strconv"
	"strings"
)

// confirm has a count typed before something is done that nothing can undo: whoever types it has read it.
func confirm(ctx context.Context, t *tool, what string, count int64) error {
	return ask(ctx, t, what, strconv.FormatInt(count, 10))
}

// ask has something typed before what should not be done unread. Without anybody at stdin, and with any other answer, it is refused.
func ask(ctx context.Context, t *tool, what, want string) error {
	t.screen.Say("%s; type %s to continue:", what, want)
	answer := make(chan string, 1)
	go func() {
		// It may wait for a key until the process ends: reading from a terminal can't be cancelled.
		line, _ := bufio.NewReader(t.stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return &unansweredError{context.Cause(ctx)}
	case a := <-answer:
		switch a {
		case want:
			return nil
		case "":
			return refuse("%s was not typed, nothing was done: --yes skips the question", want)
		}
		return refuse("%q is not %s, nothing was done", a, want)
	}
}

// unansweredError is why a verb ended while it asked.
type unansweredError struct{ err error }

func (e *unansweredError) Error() string { return e.err.Error() + ", nothing was done" }
func (e *unansweredError) Unwrap() error { return e.err }
