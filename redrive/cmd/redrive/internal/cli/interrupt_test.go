package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
)

// TestMain makes the test's program a deaf command where a test starts it as such.
func TestMain(m *testing.M) {
	if os.Getenv("REDRIVE_TEST_AS_DEAF") != "" {
		deaf()
		return // it outlives a test that was killed, and must not become the tests themselves
	}
	OutlivePipes() // the first signal that a process asks for must not be asked for in virtual time
	os.Exit(m.Run())
}

// deaf is a command that goes on after the first Ctrl-C, as one does that has work to finish.
func deaf() {
	together = 3 * time.Second // for a test that is late with its signals
	ctx, stop := Interruptible(context.Background(), os.Stderr)
	defer stop()
	fmt.Println("working")
	<-ctx.Done()
	fmt.Println("finishing:", context.Cause(ctx))
	time.Sleep(2 * together)
	fmt.Println("still finishing")
	time.Sleep(time.Minute)
}

// startDeaf runs the test's program as a deaf command.
func startDeaf(t *testing.T) (cmd *exec.Cmd, stdout *bufio.Scanner) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "REDRIVE_TEST_AS_DEAF=1")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(pipe)
}

func TestInterruptible_TheFirstStopsTheSecondEnds(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, first := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(first.String(), func(t *testing.T) {
			t.Parallel()
			interruptedTwice(t, first)
		})
	}
}

func interruptedTwice(t *testing.T, first syscall.Signal) {
	// Below nohup the hangup is ignored, and a program takes that over from the one that starts it;
	// a handler it does not.
	received := make(chan os.Signal, 1)
	signal.Notify(received, first)
	t.Cleanup(func() { signal.Stop(received) })
	cmd, out := startDeaf(t)
	next := func(want string) {
		if !out.Scan() || out.Text() != want {
			t.Fatalf("it says %q, want %q", out.Text(), want)
		}
	}
	next("working")
	for range 3 { // as coreutils' timeout does: it means one
		if err := cmd.Process.Signal(first); err != nil {
			t.Fatal(err)
		}
	}
	next("finishing: interrupted")
	if err := cmd.Process.Signal(first); err != nil {
		t.Fatal(err)
	}
	next("still finishing")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if status, _ := exit.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended by %v, want the signal", err)
	}
}

// A run in virtual time is over, and somewhere in the process a pipe breaks.
func TestOutlivePipes_OfARunInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) { OutlivePipes() })
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGPIPE)
	t.Cleanup(func() { signal.Stop(received) })
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	if _, err := in.WriteString("x"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing ended with %v", err)
	}
	in.Close()
	<-received
}
