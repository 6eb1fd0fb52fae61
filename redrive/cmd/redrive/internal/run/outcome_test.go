package run

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/output"
)

// run, resume, status and abort print the same outcome. A count that is known to be zero is 0, not
// null.
func TestShowOutcome_PrintsAllCounts(t *testing.T) {
	t.Parallel()
	begun := redrive.Outcome{Topic: "orders.dlq", ID: "20260102-150405-a1b2c3", State: redrive.Canary, By: "ada", Owner: "host/1", Started: clitest.Noon, Heartbeat: clitest.Noon}
	begun.Counts.Selected = 60
	over := begun
	over.State, over.Cause, over.Why, over.Ended = redrive.Aborted, "it failed again", "OPS-1", clitest.Noon.Add(time.Minute)
	over.Counts = redrive.Counts{
		Selected: 60, Sent: 12, Succeeded: 3, Failed: 2, FailedByClass: map[string]int64{"http.503": 1, "tax": 1}, Pending: 4, Retrying: 1,
		Discarded: 1, Unknown: 2, Skipped: map[string]int64{redrive.SkippedExpired: 1, redrive.SkippedEdit: 20},
	}
	stopped := begun
	stopped.State, stopped.Stopped, stopped.Waiting = redrive.Sending, clitest.Noon.Add(time.Second), "it was stopped"
	sending, watching := begun, begun
	sending.State, sending.Pace, sending.Counts.Sent = redrive.Sending, redrive.Pace{Rate: 2, Window: 30 * time.Second}, 20
	watching.State, watching.Pace, watching.WindowEnds = redrive.Watching, sending.Pace, clitest.Noon.Add(20*time.Second)
	for name, o := range map[string]redrive.Outcome{"run-begun": begun, "run-over": over, "run-stopped": stopped, "run-sending": sending, "run-watching": watching} {
		for _, f := range output.Formats {
			var data bytes.Buffer
			tl := &cli.Tool{Process: cli.Process{Now: func() time.Time { return clitest.Noon.Add(time.Second) }}, Screen: output.NewScreen(&data, io.Discard, func(string) string { return "" })}
			tl.Screen.Look = output.Look{Now: func() time.Time { return clitest.Noon.Add(time.Hour) }, Zone: time.UTC}
			tl.Screen.Format = output.Format(f)
			if err := showOutcome(tl, o); err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, name+"."+f, data.String())
		}
	}
}

// A run that needs an operator must not look like one that goes on or is done.
func TestStateField_HasTheToneOfTheState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    redrive.Outcome
		want string
	}{
		{redrive.Outcome{State: redrive.Done}, "\x1b[32mdone\x1b[0m"},
		{redrive.Outcome{State: redrive.Aborted}, "\x1b[31maborted\x1b[0m"},
		{redrive.Outcome{State: redrive.Sending, Heartbeat: clitest.Noon}, "\x1b[36msending\x1b[0m"},
		{redrive.Outcome{State: redrive.Waiting, Heartbeat: clitest.Noon}, "\x1b[33mwaiting\x1b[0m"},
		{redrive.Outcome{State: redrive.Sending, Heartbeat: clitest.Noon, Stopped: clitest.Noon}, "\x1b[33mstopped\x1b[0m"},
		{redrive.Outcome{State: redrive.Sending}, "\x1b[33munfinished\x1b[0m"},
	} {
		var data bytes.Buffer
		screen := output.NewScreen(&data, io.Discard, func(string) string { return "" })
		screen.SetColour(output.Always)
		if err := screen.Object(stateField(c.o, clitest.Noon)); err != nil {
			t.Fatal(err)
		}
		if got := data.String(); !strings.HasSuffix(got, "  "+c.want+"\n") {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
}

// A run's record has the state of its last write. After the process stopped or died, "sending" is
// no longer true.
func TestStateOf_ARunWithoutAProcess(t *testing.T) {
	t.Parallel()
	o := redrive.Outcome{State: redrive.Sending, Heartbeat: clitest.Noon}
	stopped, over := o, o
	stopped.Stopped = clitest.Noon
	over.State = redrive.Done
	for name, c := range map[string]struct {
		o     redrive.Outcome
		after time.Duration
		want  string
	}{
		"goes on":                  {o, silentAfter, "sending"},
		"has no heartbeat":         {o, silentAfter + 1, "unfinished"},
		"was stopped":              {stopped, 0, "stopped"},
		"was stopped, a while ago": {stopped, time.Hour, "stopped"},
		"is over":                  {over, time.Hour, "done"},
	} {
		if got := stateOf(c.o, clitest.Noon.Add(c.after)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// A table that is too wide for its terminal does without some columns, and not without those that
// one acts by.
func TestRunFields_FitTheTerminal(t *testing.T) {
	t.Parallel()
	run := redrive.Outcome{Topic: "orders.dlq", ID: "20260102-150405-a1b2c3", State: redrive.Watching, By: "oncall", Why: strings.Repeat("long ", 30), Started: clitest.Noon, Ended: clitest.Noon}
	run.Counts = redrive.Counts{Selected: 123456, Sent: 123456, Succeeded: 123456, Failed: 123456, Pending: 123456}
	clitest.Fit{Needs: []string{"RUN", "STATE", "FAILED", "PENDING", "WHY"}, Always: []string{"RUN", "STATE", "WHY"}, Shows: run.ID}.Check(t, "runs", runFields(run, clitest.Noon))
}
