package root

// The start of the program, and the message with which it ends.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	_ "time/tzdata" // rules name time zones, and an image may have none

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/run"
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

// remedies is the options for each refusal. TOPIC stands for the dead-letter topic.
var remedies = map[redrive.Refusal]string{
	redrive.RefusedNothing:    "redrive summary TOPIC shows what is open",
	redrive.RefusedEdit:       "redrive show TOPIC P:OFFSET shows a letter's value; choose the letters that it fits by --class or --where",
	redrive.RefusedNoTier:     "--target names another topic",
	redrive.RefusedPartitions: "--target names another topic, redrive discard discards the letters",
	redrive.RefusedTarget:     "--target names another topic",
	redrive.RefusedNoMembers:  "--wait waits until they are there",
	redrive.RefusedCompacted:  "--force redrives them all the same",
	redrive.RefusedNaming:     "--retry-name sets how retry topics are named, --force redrives the letters all the same",
	redrive.RefusedTooOften:   "--max-redrives raises the limit, redrive discard discards the letters",
	redrive.RefusedRetention:  "omit --keep-timestamp, or choose younger letters by --since",
	redrive.RefusedLarge:      "choose fewer letters by --class or --since",
	redrive.RefusedMany:       "--offset P:OFFSET chooses one, as redrive list TOPIC prints them",
}

// remedy is what the user can do about an error, if anything is known.
func remedy(t *cli.Tool, err error) string {
	r, ok := errors.AsType[*redrive.RefusedError](err)
	if !ok {
		return ""
	}
	if r.Reason == redrive.RefusedUnfinished {
		name := r.Topic + "/" + r.Run.ID
		// it may be a colleague's, so no hint to end it
		if _, yes := run.ActiveOwner(t, *r.Run); yes {
			return fmt.Sprintf("redrive status %s --follow shows how far it is", name)
		}
		return fmt.Sprintf("redrive resume %s continues it, redrive abort %s ends it", name, name)
	}
	hint := strings.ReplaceAll(remedies[r.Reason], "TOPIC", r.Topic)
	if strings.Contains(r.Detail, "name a target topic") {
		hint += "; --target accepts letters that name no group"
	}
	return hint
}
