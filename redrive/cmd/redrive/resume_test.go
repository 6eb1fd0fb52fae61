package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

// Resume read the ledger for three seconds to find the run's owner. If an open transaction held the
// reading up for longer, resume took a colleague's run without asking.
func TestResume_AsksWhereTheLedgerIsSlow(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		s.Fix("tax")
		var unasked result
		var name string
		got := s.whileSending(t, "5", func(run string) {
			s.heldUp(t, "orders.dlq.ledger", 6*time.Second)
			name, unasked = run, s.redrive(t, "resume", run, "--by", "ada")
		})
		asks := "run " + name + " is running: the last heartbeat of oncall on "
		if unasked.code != cli.ExitRefused || !strings.HasPrefix(unasked.stderr, asks) || !strings.HasSuffix(unasked.stderr, "redrive: yes was not typed, nothing was done: --yes skips the question\n") {
			t.Errorf("resume: %+v", unasked)
		}
		if o := outcomeOf(t, got.stdout); got.code != cli.ExitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "oncall on ") {
			t.Errorf("run: %+v", got)
		}
	})
}

func TestResume_ContinuesWhereTheRunWas(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		o := s.interruptedRun(t)
		i := s.as()
		i.now = func() time.Time { return time.Now().Add(time.Hour) }
		for _, args := range [][]string{{"status", o.Run}, {"runs", "orders.dlq"}} {
			if got := i.run(t, args...); got.code != cli.ExitDone || !strings.Contains(got.stderr, "warning: run "+o.Run+" is unfinished (it was stopped at ") || !strings.Contains(got.stderr, "Z, and waits to be resumed or aborted), and oncall on ") || !strings.Contains(got.stderr, "redrive resume "+o.Run+" continues it") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		got := s.redrive(t, "resume", o.Run, "--by", "ada", "-o", "json")
		end := outcomeOf(t, got.stdout)
		if got.code != cli.ExitDone || end.State != "done" || end.Succeeded != 60 || end.By != "oncall" || !strings.HasPrefix(end.Owner, "ada on ") {
			t.Errorf("%+v", got)
		}
		if !strings.HasPrefix(got.stderr, fmt.Sprintf("run %s: %d of 60 letters were sent; at 20 records a second\n", o.Run, o.Sent)) {
			t.Errorf("it says %s", got.stderr)
		}
		if records, calls := s.Processed(); records != 60 || calls != 60 {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		prints(t, s.redrive(t, "resume", o.Run), cli.ExitError, "", "is done: it cannot be resumed; begin a new run with the same options")
	})
}

// A run turned out to be too slow. It goes on at another rate, which the ledger keeps. Of two
// operators who change the rate at the same time one is refused.
func TestResume_ChangesTheRateForOneOperator(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		o := s.interruptedRun(t)
		for _, c := range []struct{ flag, value, says string }{
			{"--rate", "-1", "--rate is negative"},
			{"--rate", "NaN", "--rate: NaN is not a usable number"},
			{"--tolerate", "many", `--tolerate: "many" is not`},
			{"--window", "-1s", "--window is negative"},
			{"--canary", "3", "unknown flag: --canary"},
		} {
			prints(t, s.redrive(t, "resume", o.Run, c.flag+"="+c.value), cli.ExitUsage, "", c.says)
		}
		got := map[string]result{}
		var both sync.WaitGroup
		var mu sync.Mutex
		for _, rate := range []string{"40", "15"} {
			both.Go(func() {
				r := s.redrive(t, "resume", o.Run, "--by", "rate-"+rate, "--rate", rate, "--window", "5s", "-o", "json")
				mu.Lock()
				defer mu.Unlock()
				got[rate] = r
			})
		}
		both.Wait()
		won, lost := got["40"], got["15"]
		if won.code != cli.ExitDone {
			won, lost = lost, won
		}
		end := outcomeOf(t, won.stdout)
		if won.code != cli.ExitDone || end.State != "done" || end.Succeeded != 60 || !strings.HasPrefix(end.Owner, fmt.Sprintf("rate-%g on ", end.Rate)) {
			t.Errorf("the first: %+v", won)
		}
		if lost.code != cli.ExitRefused || !strings.Contains(lost.stderr, ". To resume it here takes it from that process; type yes to continue:") {
			t.Errorf("the second: %+v", lost)
		}
		if again := outcomeOf(t, s.redrive(t, "status", o.Run, "-o", "json").stdout); again.Rate != end.Rate {
			t.Errorf("the ledger has the rate %g, not %g", again.Rate, end.Rate)
		}
	})
}

// A refusal because of a colleague's run must not advise to end that run. The operator takes it
// only after a question that names its owner.
func TestResume_AsksBeforeItTakesAnActiveRun(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		s.Fix("tax")
		var beaten, refused, unasked, took result
		var name string
		lost := s.whileSending(t, "5", func(run string) {
			name = run
			refused = s.redrive(t, "plan", "orders.dlq")
			beaten = s.redrive(t, "run", "orders.dlq")
			unasked = s.redrive(t, "resume", name)
			knowing := s.as()
			knowing.stdin = "yes\n"
			took = knowing.run(t, "resume", name, "--by", "ada", "--rate", "0", "-o", "json")
		})
		if refused.code != cli.ExitRefused || !strings.Contains(refused.stderr, "s ago: wait until it ends\n  redrive status "+name+" --follow shows how far it is\n") || strings.Contains(refused.stderr, "resume") {
			t.Errorf("plan: %+v", refused)
		}
		if beaten.code != cli.ExitRefused || !strings.HasPrefix(beaten.stderr, "redrive: orders.dlq: refused: unfinished run: run "+name) {
			t.Errorf("run: %+v", beaten)
		}
		asks := "run " + name + " is running: the last heartbeat of oncall on "
		if unasked.code != cli.ExitRefused || !strings.HasPrefix(unasked.stderr, asks) || !strings.Contains(unasked.stderr, "s ago. To resume it here takes it from that process; type yes to continue:\nredrive: yes was not typed, nothing was done: --yes skips the question\n") {
			t.Errorf("resume unasked: %+v", unasked)
		}
		if o := outcomeOf(t, took.stdout); took.code != cli.ExitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "ada on ") || !strings.HasPrefix(took.stderr, asks) {
			t.Errorf("resume: %+v", took)
		}
		if lost.code != cli.ExitError {
			t.Errorf("run: %+v", lost)
		}
	})
}
