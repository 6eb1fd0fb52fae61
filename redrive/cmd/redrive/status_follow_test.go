package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// A colleague began a run. Whoever follows it sees what the colleague sees, until its end, and has
// its exit code.
func TestFollowRun_ShowsWhatTheRunShows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags string
		code  string
		shows []string
	}{
		"done":    {"--class tax --rate 2", "0", []string{" of 60 letters were sent; at 2 records a second", "sending\n", "all is sent; watching for failures", "watching (", "s left), 0 failed again, 60 sent at ", "STATE         done", "SUCCEEDED     60"}},
		"aborted": {"--rate 2 --where 'class==\"tax\"||partition==3'", "3", []string{"sending\n", "STATE         aborted", "not sent, still open: ", "redrive: orders.dlq/20000101-", " aborted: letter orders.dlq/3/", "failed again with payment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newNight(t, bug{"tax", "no rate", 60, false}, bug{"payment", "the bank said no", 40, false})
				if _, err := n.fail(t.Context()); err != nil {
					t.Fatal(err)
				}
				n.fix("tax")
				told := n.tell(strings.NewReplacer("FLAGS", c.flags, "CODE", c.code).Replace(`
<!-- night: exits CODE -->
    $ redrive run orders.dlq --yes --ramp 0 --window 1m FLAGS
<!-- night: exits CODE -->
<!-- night: meanwhile the canary succeeded -->
    $ redrive status orders.dlq/20000101-000000-000001 --follow
`))
				_, status, _ := strings.Cut(told, "$ redrive status ")
				inOrder(t, status, append([]string{"run orders.dlq/20000101-000", "-000001 of ada on laptop, process 4711"}, c.shows...)...)
			})
		})
	}
}

// Who follows a run can leave, and a run that nobody goes on with has no end to wait for.
func TestFollowRun_LeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	s.fix("tax")
	var left result
	got := s.whileSending(t, "20", func(run string) {
		ctx, stop := context.WithCancelCause(t.Context())
		i := s.as()
		i.heard = func(words string) {
			if strings.Contains(words, "letters were sent; at 20 records a second") {
				stop(errInterrupted)
			}
		}
		left = i.in(ctx, t, "status", run, "--follow")
	})
	o := outcomeOf(t, got.stdout)
	if left.code != exitError || left.stdout != "" || !strings.HasSuffix(left.stderr, "the run goes on: redrive status "+o.Run+" --follow follows it again\nredrive: interrupted\n") {
		t.Errorf("it left with %+v", left)
	}
	if got.code != exitDone || o.Succeeded != 60 {
		t.Errorf("run: %+v", got)
	}
	// It is over already.
	prints(t, s.redrive(t, "status", o.Run, "--follow"), exitDone, "STATE         done\n", "")
	prints(t, s.redrive(t, "status", "orders.dlq/none", "--follow"), exitError, "", "there is no such run")
	prints(t, s.redrive(t, "status", o.Run, "--no-wait"), exitUsage, "", "--no-wait and --on-end are for status --follow")
}

func TestFollowedError_IsThatOfTheRun(t *testing.T) {
	t.Parallel()
	tl, _ := quietTool(nil)
	for _, c := range []struct {
		o    redrive.Outcome
		gone bool
		code int
		says string
	}{
		{redrive.Outcome{State: redrive.Done}, false, exitDone, ""},
		{redrive.Outcome{State: redrive.Aborted, Cause: "letter a failed again"}, false, exitFailedAgain, "orders.dlq/r-1 aborted: letter a failed again"},
		{redrive.Outcome{State: redrive.Aborted, Cause: "aborted by ada on laptop"}, false, exitError, "orders.dlq/r-1 ended: aborted by ada on laptop"},
		{redrive.Outcome{State: redrive.Aborted, Cause: redrive.ErrTopicRecreated.Error()}, false, exitError, "orders.dlq/r-1 ended: "},
		{redrive.Outcome{State: redrive.Sending, Stopped: noon}, false, exitError, "orders.dlq/r-1 was stopped"},
		{redrive.Outcome{State: redrive.Sending, Owner: "ada on laptop", Heartbeat: noon.Add(-time.Hour)}, true, exitError, "orders.dlq/r-1 has no process: ada on laptop was last heard from 1h ago"},
	} {
		c.o.Topic, c.o.ID = "orders.dlq", "r-1"
		err := followedError(tl, c.o, c.gone)
		if got := exitCode(err); got != c.code || c.says != "" && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: exit code %d, %v; want %d, %s", c.o, got, err, c.code, c.says)
		}
	}
	if got := quiet(tl, redrive.Outcome{Heartbeat: noon.Add(-time.Hour)}); got >= silentAfter || got <= 2*askEvery {
		t.Errorf("after an old heartbeat it waits %s", got)
	}
	if got := quiet(tl, redrive.Outcome{Heartbeat: noon}); got != silentAfter {
		t.Errorf("after a heartbeat it waits %s", got)
	}
}
