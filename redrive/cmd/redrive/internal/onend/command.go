package onend

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// shell runs a command's text. Nothing of a report is a part of that text.
const shell = "sh"

// linger is how long a command's children may keep its output open after it ended.
const linger = time.Second

func (t Target) run(ctx context.Context, c Call) error {
	cmd := exec.CommandContext(ctx, shell, "-c", t.command)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(c.Secrets, name)
	}), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Body), c.Words, c.Words
	cmd.WaitDelay = linger
	endTogether(cmd)
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // it succeeded, and something that it started goes on
	}
	return err
}
