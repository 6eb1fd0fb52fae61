package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Confirm asks the user to type a count before a verb does what nothing can undo. To type the
// count, the user has to read it.
func Confirm(ctx context.Context, t *Tool, question string, count int64) error {
	return ask(ctx, t, question, strconv.FormatInt(count, 10))
}

// Agree asks the user a question that y or yes answers.
func Agree(ctx context.Context, t *Tool, question string) error {
	return ask(ctx, t, question, "yes", "y")
}

// ask asks the user to type want. It takes others for want, and the case of letters does not
// matter. It refuses at the end of stdin and for any other answer.
func ask(ctx context.Context, t *Tool, question, want string, others ...string) error {
	t.Screen.Print("%s; type %s to continue:", question, want)
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
