package run_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Resume read the ledger for three seconds to find the run's owner. If an open transaction held the
// reading up for longer, resume took a colleague's run without asking.
func TestResume_AsksWhereTheLedgerIsSlow(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		var unasked roottest.Result
		var name string
		got := s.WhileSending(t, "5", func(run string) {
			s.HeldUp(t, "orders.dlq.ledger", 6*time.Second)
			name, unasked = run, s.Redrive(t, "resume", run, "--by", "ada")
		})
		asks := "run " + name + " is running: the last heartbeat of oncall on "
		if unasked.Code != cli.ExitRefused || !strings.HasPrefix(unasked.Stderr, asks) || !strings.HasSuffix(unasked.Stderr, "redrive: yes was not typed, nothing was done: --yes skips the question\n") {
			t.Errorf("resume: %+v", unasked)
		}
		if o := roottest.OutcomeOf(t, got.Stdout); got.Code != cli.ExitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "oncall on ") {
			t.Errorf("run: %+v", got)
		}
	})
}

func TestResume_ContinuesWhereTheRunWas(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		o := s.InterruptedRun(t)
		i := s.As()
		i.Now = func() time.Time { return time.Now().Add(time.Hour) }
		for _, args := range [][]string{{"status", o.Run}, {"runs", "orders.dlq"}} {
			if got := i.Run(t, args...); got.Code != cli.ExitDone || !strings.Contains(got.Stderr, "warning: run "+o.Run+" is unfinished (it was stopped at ") || !strings.Contains(got.Stderr, "Z, and waits to be resumed or aborted), and oncall on ") || !strings.Contains(got.Stderr, "redrive resume "+o.Run+" continues it") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		got := s.Redrive(t, "resume", o.Run, "--by", "ada", "-o", "json")
		end := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || end.State != "done" || end.Succeeded != 60 || end.By != "oncall" || !strings.HasPrefix(end.Owner, "ada on ") {
			t.Errorf("%+v", got)
		}
		if !strings.HasPrefix(got.Stderr, fmt.Sprintf("run %s: %d of 60 letters were sent; at 20 records a second\n", o.Run, o.Sent)) {
			t.Errorf("it says %s", got.Stderr)
		}
		if records, calls := s.Processed(); records != 60 || calls != 60 {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		roottest.Prints(t, s.Redrive(t, "resume", o.Run), cli.ExitError, "", "is done: it cannot be resumed; begin a new run with the same options")
	})
}

// A run turned out to be too slow. It goes on at another rate, which the ledger keeps. Of two
// operators who change the rate at the same time one is refused.
func TestResume_ChangesTheRateForOneOperator(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		o := s.InterruptedRun(t)
		for _, c := range []struct{ flag, value, message string }{
			{"--rate", "-1", "--rate is negative"},
			{"--rate", "NaN", "--rate: NaN is not a usable number"},
			{"--tolerate", "many", `--tolerate: "many" is not`},
			{"--window", "-1s", "--window is negative"},
			{"--canary", "3", "unknown flag: --canary"},
		} {
			roottest.Prints(t, s.Redrive(t, "resume", o.Run, c.flag+"="+c.value), cli.ExitUsage, "", c.message)
		}
		got := map[string]roottest.Result{}
		var both sync.WaitGroup
		var mu sync.Mutex
		for _, rate := range []string{"40", "15"} {
			both.Go(func() {
				r := s.Redrive(t, "resume", o.Run, "--by", "rate-"+rate, "--rate", rate, "--window", "5s", "-o", "json")
				mu.Lock()
				defer mu.Unlock()
				got[rate] = r
			})
		}
		both.Wait()
		won, lost := got["40"], got["15"]
		if won.Code != cli.ExitDone {
			won, lost = lost, won
		}
		end := roottest.OutcomeOf(t, won.Stdout)
		if won.Code != cli.ExitDone || end.State != "done" || end.Succeeded != 60 || !strings.HasPrefix(end.Owner, fmt.Sprintf("rate-%g on ", end.Rate)) {
			t.Errorf("the first: %+v", won)
		}
		if lost.Code != cli.ExitRefused || !strings.Contains(lost.Stderr, ". To resume it here takes it from that process; type yes to continue:") {
			t.Errorf("the second: %+v", lost)
		}
		if again := roottest.OutcomeOf(t, s.Redrive(t, "status", o.Run, "-o", "json").Stdout); again.Rate != end.Rate {
			t.Errorf("the ledger has the rate %g, not %g", again.Rate, end.Rate)
		}
	})
}

// A refusal because of a colleague's run must not advise to end that run. The operator takes it
// only after a question that names its owner.
func TestResume_AsksBeforeItTakesAnActiveRun(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		var beaten, refused, unasked, took roottest.Result
		var name string
		lost := s.WhileSending(t, "5", func(run string) {
			name = run
			refused = s.Redrive(t, "plan", "orders.dlq")
			beaten = s.Redrive(t, "run", "orders.dlq")
			unasked = s.Redrive(t, "resume", name)
			knowing := s.As()
			knowing.Stdin = "yes\n"
			took = knowing.Run(t, "resume", name, "--by", "ada", "--rate", "0", "-o", "json")
		})
		if refused.Code != cli.ExitRefused || !strings.Contains(refused.Stderr, "s ago: wait until it ends\n  redrive status "+name+" --follow shows how far it is\n") || strings.Contains(refused.Stderr, "resume") {
			t.Errorf("plan: %+v", refused)
		}
		if beaten.Code != cli.ExitRefused || !strings.HasPrefix(beaten.Stderr, "redrive: orders.dlq: refused: unfinished run: run "+name) {
			t.Errorf("run: %+v", beaten)
		}
		asks := "run " + name + " is running: the last heartbeat of oncall on "
		if unasked.Code != cli.ExitRefused || !strings.HasPrefix(unasked.Stderr, asks) || !strings.Contains(unasked.Stderr, "s ago. To resume it here takes it from that process; type yes to continue:\nredrive: yes was not typed, nothing was done: --yes skips the question\n") {
			t.Errorf("resume unasked: %+v", unasked)
		}
		if o := roottest.OutcomeOf(t, took.Stdout); took.Code != cli.ExitDone || o.Succeeded != 60 || !strings.HasPrefix(o.Owner, "ada on ") || !strings.HasPrefix(took.Stderr, asks) {
			t.Errorf("resume: %+v", took)
		}
		if lost.Code != cli.ExitError {
			t.Errorf("run: %+v", lost)
		}
	})
}
