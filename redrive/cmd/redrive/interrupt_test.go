package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
)

// TestMain makes the test's program the command itself where a test starts it as such.
//
// Some tests wait for runs in real time. More of them do so side by side than there are processors.
// With the race detector they compute more than they wait.
func TestMain(m *testing.M) {
	switch os.Getenv("REDRIVE_TEST_AS") {
	case "command":
		main()
	case "deaf":
		deaf()
		return // it outlives a test that was killed, and must not become the tests themselves
	}
	cli.OutlivePipes() // the first signal that a process asks for must not be asked for in virtual time
	if flag.Parse(); !cases.Few {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// deaf is a command that goes on after the first Ctrl-C, as one does that has work to finish.
func deaf() {
	cli.Together = 3 * time.Second // for a test that is late with its signals
	ctx, stop := cli.Interruptible(context.Background(), os.Stderr)
	defer stop()
	fmt.Println("working")
	<-ctx.Done()
	fmt.Println("finishing:", context.Cause(ctx))
	time.Sleep(2 * cli.Together)
	fmt.Println("still finishing")
	time.Sleep(time.Minute)
}

// start runs the test's program as something else.
func start(t *testing.T, as string, args ...string) (cmd *exec.Cmd, stdout *bufio.Scanner, stderr *strings.Builder) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "REDRIVE_TEST_AS="+as)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr = &strings.Builder{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(pipe), stderr
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
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, first)
	t.Cleanup(func() { signal.Stop(heard) })
	cmd, out, _ := start(t, "deaf")
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

func TestInterruptible_EndsAVerbWithItsCode(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	begun := make(chan struct{})
	go func() {
		if conn, err := mute.Accept(); err == nil {
			close(begun)
			_, _ = conn.Read(make([]byte, 1<<10)) // what it asks
			_, _ = conn.Read(make([]byte, 1))     // until it hangs up
			conn.Close()
		}
	}()
	cmd, _, stderr := start(t, "command", "topics", "--brokers", mute.Addr().String(), "--timeout", "1m")
	<-begun
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	asked := time.Now()
	err = cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != cli.ExitError || time.Since(asked) > 50*time.Second {
		t.Errorf("it ended by %v after %s, want exit code %d at once", err, time.Since(asked), cli.ExitError)
	}
	if want := "\nstopping; once more ends at once\nredrive: interrupted\n"; stderr.String() != want {
		t.Errorf("stderr = %q, want %q", stderr, want)
	}
}

// A run in virtual time is over, and somewhere in the process a pipe breaks.
func TestOutlivePipes_OfARunInVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) { cli.OutlivePipes() })
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGPIPE)
	t.Cleanup(func() { signal.Stop(heard) })
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out.Close()
	if _, err := in.WriteString("x"); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing ended with %v", err)
	}
	in.Close()
	<-heard
}

// The pipe of `redrive run … 2>&1 | head -1` broke, and the signal killed the run like a crash. It
// goes on, and its exit code says that its outcome was not printed.
func TestOutlivePipes_ARunGoesOnWithoutReaders(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s := incidentOn(t, nil, nil, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
	s.Fix("tax")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"run", "orders.dlq", "--yes", "--brokers", s.addr}, fast...)...)
	cmd.Env = append(os.Environ(), "REDRIVE_TEST_AS=command")
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
	prints(t, s.redrive(t, "runs", "orders.dlq", "-o", "json"), cli.ExitDone, `"state":"done"`, "")
}
