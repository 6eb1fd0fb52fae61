//go:build unix

package onend

import (
	"testing"
	"time"
)

func TestTarget_RunTellsByStdinAndVariables(t *testing.T) {
	t.Setenv("SIDING_SASL_PASSWORD", "hunter2")
	t.Setenv("SIDING_SASL_TOKEN", "hunter2")
	t.Setenv("INHERITED", "yes")
	got, err := told(t, `cat; echo " $REDRIVE_CAUSE|$INHERITED|$SIDING_SASL_PASSWORD$SIDING_SASL_TOKEN|"`, Patience, "REDRIVE_CAUSE=$(echo run) `echo run`")
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
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: given up after %s", command, took)
		}
	}
}
