//go:build unix

package onend

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestTarget_RunTellsByStdinAndVariables(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	t.Setenv("INHERITED", "yes")
	got, err := told(t, `cat; echo " $REDRIVE_CAUSE|$INHERITED|$SECRET|"`, Patience, "REDRIVE_CAUSE=$(echo run) `echo run`")
	if want := `{"run":"orders.dlq/r-1"}` + " $(echo run) `echo run`|yes||\n"; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestTarget_RunReportsFailures(t *testing.T) {
	t.Parallel()
	for command, says := range map[string]string{
		"exit 3":                       "exit status 3",
		"no-such-command-of-anyone":    "exit status 127",
		"true":                         "", // it reads nothing of its stdin
		"sleep 5 & echo $! >/dev/null": "", // what it started goes on
	} {
		_, err := told(t, command, Patience)
		wants(t, err, says, command)
	}
}

// A command that hangs would keep the operator's terminal, or a job, for ever. So would its
// children, which hold its output open.
func TestTarget_RunGivesUpACommandThatHangs(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"sleep 100", "sleep 100; true", "trap '' TERM INT; sleep 100 | cat"} {
		began := time.Now()
		_, err := told(t, command, 100*time.Millisecond)
		wants(t, err, "it took more than 100ms, and was given up", command)
		if took := time.Since(began); took > 90*time.Second { // the command sleeps for 100 s
			t.Errorf("%s: given up after %s", command, took)
		}
	}
}

// A command that was given up leaves nothing behind that goes on for hours.
func TestTarget_RunEndsTheChildrenToo(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe) // until no process has it open for writing
		ended <- err
	}()
	_, err := told(t, "sleep 60 >"+pipe+" & wait", 3*time.Second)
	wants(t, err, "was given up")
	select {
	case err := <-ended:
		wants(t, err, "")
	case <-time.After(20 * time.Second):
		t.Error("a child of the command goes on")
	}
}
