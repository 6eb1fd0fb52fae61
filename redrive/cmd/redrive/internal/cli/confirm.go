package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Confirm asks the user to type a count before a verb does what nothing can undo. A user who types
// the count has read it.
func Confirm(ctx context.Context, t *Tool, what string, count int64) error {
	return ask(ctx, t, what, strconv.FormatInt(count, 10))
}

// Agree asks the user a question that y or yes answers.
func Agree(ctx context.Context, t *Tool, what string) error {
	return ask(ctx, t, what, "yes", "y")
}

// ask asks the user to type want. It takes others for want, and the case of letters does not
// matter. It refuses at the end of stdin and for any other answer.
func ask(ctx context.Context, t *Tool, what, want string, others ...string) error {
	t.Screen.Say("%s; type %s to continue:", what, want)
	answer := make(chan string, 1)
	go func() {
		// This may wait until the process ends, since reading from a terminal can't be cancelled.
		line, _ := bufio.NewReader(t.Stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ErrUnanswered
	case a := <-answer:
		switch {
		case a == "":
			return Refuse("%s was not typed, nothing was done: --yes skips the question", want)
		case slices.Contains(append(others, want), strings.ToLower(a)):
			return nil
		}
		return Refuse("%q is not %s, nothing was done", a, want)
	}
}

// ErrUnanswered ends a verb that was interrupted while it asked.
var ErrUnanswered = fmt.Errorf("%w, nothing was done", ErrInterrupted)
