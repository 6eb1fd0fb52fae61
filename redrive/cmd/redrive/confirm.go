package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// confirm asks the user to type a count before a verb does what nothing can undo. A user who types
// the count has read it.
func confirm(ctx context.Context, t *tool, what string, count int64) error {
	return ask(ctx, t, what, strconv.FormatInt(count, 10))
}

// agree asks the user a question that y or yes answers.
func agree(ctx context.Context, t *tool, what string) error {
	return ask(ctx, t, what, "yes", "y")
}

// ask asks the user to type want. It takes others for want, and the case of letters does not
// matter. It refuses at the end of stdin and for any other answer.
func ask(ctx context.Context, t *tool, what, want string, others ...string) error {
	t.screen.Say("%s; type %s to continue:", what, want)
	answer := make(chan string, 1)
	go func() {
		// This may wait until the process ends, since reading from a terminal can't be cancelled.
		line, _ := bufio.NewReader(t.stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return errUnanswered
	case a := <-answer:
		switch {
		case a == "":
			return refuse("%s was not typed, nothing was done: --yes skips the question", want)
		case slices.Contains(append(others, want), strings.ToLower(a)):
			return nil
		}
		return refuse("%q is not %s, nothing was done", a, want)
	}
}

// errUnanswered ends a verb that was interrupted while it asked.
var errUnanswered = fmt.Errorf("%w, nothing was done", errInterrupted)
