package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// process is what the operating system gives a command.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            connect.Environment
	now            func() time.Time // in the user's zone
	user           string           // who runs it; empty where the system does not tell
}

// tool is what all verbs share.
type tool struct {
	process
	screen  *output.Screen
	flags   *connect.Flags
	utc     bool
	verbose bool

	started bool // a verb has begun: what comes now is no error of usage by itself
}

// run is the whole command: it returns the exit code.
func run(ctx context.Context, p process, args []string) int {
	t := &tool{process: p, screen: output.NewScreen(p.stdout, p.stderr, p.env.Getenv)}
	root := newRoot(t)
	root.SetArgs(append([]string{}, args...)) // of nil, cobra would make the process's own
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !t.started {
		err = usage(err)
	}
	t.screen.Status("")
	t.inform(ctx, cmd, err)
	return exitCode(err)
}

// inform prints the one message of a command that did not do what it was asked for.
func (t *tool) inform(ctx context.Context, cmd *cobra.Command, err error) {
	switch {
	case err == nil:
		return
	case interrupted(ctx):
		if !isA[*unansweredError](err) {
			err = errInterrupted
		}
		t.screen.Say("redrive: %v", err)
		return
	}
	lines := strings.Split(strings.TrimPrefix(withoutGuess(err.Error()), "redrive: "), "\n") // the engine's begin with it, too
	for i, line := range lines {
		if i == 0 {
			t.screen.Say("redrive: %s", line)
		} else {
			t.screen.Say("  %s", line)
		}
	}
	if hint := remedy(t, err); hint != "" {
		t.screen.Say("  %s", hint)
	}
	if exitCode(err) == exitUsage {
		t.screen.Say("see %s --help", cmd.CommandPath())
	}
}

// withoutGuess takes the client's guess out of an error: that TLS or SASL may be missing is no help where the broker has answered
// before. Where it has not, [connect.UnreachableError] has a better one.
func withoutGuess(text string) string {
	return guess.ReplaceAllString(text, "the broker hung up at once")
}

var guess = regexp.MustCompile(`broker closed the connection immediately [^:]*: is (TLS|SASL) [^?]*\?`)
