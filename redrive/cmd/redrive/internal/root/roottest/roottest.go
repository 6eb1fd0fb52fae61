// Package roottest runs the program in tests: on an embedded broker, or on an incident in virtual
// time. It checks what the program prints, and its exit code.
package roottest

// The program of tests.

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root"
)

// asCommand is the variable that makes the program of tests the command itself.
const asCommand = "REDRIVE_TEST_AS_COMMAND"

// RunTests is the TestMain of a package whose tests run the program.
//
// Some tests wait for runs in real time. More of them do so side by side than there are processors.
// With the race detector they compute more than they wait.
func RunTests(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(root.Main())
	}
	// the first signal that a process asks for must not be asked for in virtual time
	cli.OutlivePipes()
	if flag.Parse(); !cases.Few {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// Command returns the program as a process of its own, which ends with the context at the latest.
func Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// NewCommands are all verbs and their flags.
func NewCommands() *cobra.Command {
	return root.New(&cli.Tool{Screen: output.NewScreen(nil, nil, func(string) string { return "" })}, nil)
}
