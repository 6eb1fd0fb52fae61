package run_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The pipe of `redrive run … 2>&1 | head -1` broke, and the signal killed the run like a crash. It
// goes on, and its exit code shows that its outcome was not printed.
func TestRun_GoesOnWithoutReaders(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s := roottest.IncidentOn(t, nil, nil, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
	s.Fix("tax")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := roottest.Command(t.Context(), append([]string{"run", "orders.dlq", "--yes", "--brokers", s.Addr}, roottest.Fast...)...)
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if first, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(first, "run orders.dlq/") {
		t.Errorf("it says %q, %v", first, err)
	}
	out.Close()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != cli.ExitError {
		t.Errorf("it ended by %v, want exit code %d", err, cli.ExitError)
	}
	roottest.Prints(t, s.Redrive(t, "runs", "orders.dlq", "-o", "json"), cli.ExitDone, `"state":"done"`, "")
}
