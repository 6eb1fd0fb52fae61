package root

// The start of the program, and the message with which it ends.

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strings"
	"time"
	_ "time/tzdata" // rules name time zones, and an image may have none

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// Main is the program. It returns the exit code.
func Main() int {
	folder, err := os.UserConfigDir()
	if err != nil {
		folder = "" // then only --config names a configuration file
	}
	p := cli.Process{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: connect.Environment{Getenv: os.Getenv, Folder: folder},
		Now: time.Now,
	}
	if u, err := user.Current(); err == nil {
		p.User = u.Username
	}
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr)
	code := Run(ctx, p, os.Args[1:])
	stop()
	return code
}

// Run is the whole command: it returns the exit code.
func Run(ctx context.Context, p cli.Process, args []string) int {
	t := &cli.Tool{Process: p, Screen: output.NewScreen(p.Stdout, p.Stderr, p.Env.Getenv)}
	root := New(t, Run)
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would take the process's
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !t.Started {
		err = cli.Usage(err)
	}
	t.Screen.Status("")
	inform(ctx, t, cmd, err)
	return cli.ExitCode(err)
}

// inform prints the message of a command that failed.
func inform(ctx context.Context, t *cli.Tool, cmd *cobra.Command, err error) {
	switch {
	case err == nil:
		return
	case errors.Is(context.Cause(ctx), cli.ErrInterrupted):
		if !errors.Is(err, cli.ErrUnanswered) {
			err = cli.ErrInterrupted
		}
		t.Screen.Print("redrive: %v", err)
		return
	}
	// the engine's errors begin with it, too
	lines := strings.Split(strings.TrimPrefix(cli.WithoutGuess(err.Error()), "redrive: "), "\n")
	prefix := "redrive: "
	for _, line := range lines {
		t.Screen.Print("%s%s", prefix, line)
		prefix = "  "
	}
	if hint := remedy(t, err); hint != "" {
		t.Screen.Print("  %s", hint)
	}
	if cli.ExitCode(err) == cli.ExitUsage {
		t.Screen.Print("see %s --help", cmd.CommandPath())
	}
}
