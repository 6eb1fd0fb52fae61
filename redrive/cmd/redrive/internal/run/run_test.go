package run_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestRun_RedrivesAFixedClassAndRecordsIt(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--class", "tax", "--why", "OPS-1", "-o", "json"}, roottest.Fast...)...)
		o := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || o.State != "done" || o.Selected != 60 || o.Sent != 60 || o.Succeeded != 60 || o.Failed+o.Pending+o.Unknown != 0 || o.By != "oncall" || *o.Why != "OPS-1" || o.Ended == nil {
			t.Errorf("%+v", got)
		}
		roottest.InOrder(t, got.Stderr, "run "+o.Run+": 60 letters to orders.retry.1s", "canary: sending the first records", "the canary succeeded; sending\n", "all is sent")
		if strings.ContainsAny(got.Stderr, "\r\x1b") {
			t.Errorf("there is a bar without a terminal: %q", got.Stderr)
		}
		if records, calls := s.Processed(); records != 60 || calls != 60 {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if again := roottest.OutcomeOf(t, s.Redrive(t, "status", o.Run, "-o", "json").Stdout); again.Succeeded != 60 || again.State != "done" {
			t.Errorf("status: %+v", again)
		}
		if got := s.Redrive(t, "status", o.Run); !strings.Contains(got.Stdout, "SUCCEEDED     60\n") || strings.Contains(got.Stdout, "HEARTBEAT") || got.Stderr != "" {
			t.Errorf("status: %+v", got)
		}
		var listed []roottest.Outcome
		if err := json.Unmarshal([]byte(s.Redrive(t, "runs", "orders.dlq", "-o", "json").Stdout), &listed); err != nil || len(listed) != 1 || listed[0].Run != o.Run || listed[0].Succeeded != 60 {
			t.Errorf("runs: %+v, %v", listed, err)
		}
		if got := s.Redrive(t, "summary", "orders.dlq", "-o", "json"); !strings.Contains(got.Stdout, `"open":40,"pending":0,"resolved":60,`) || strings.Contains(got.Stdout, `"class":"tax"`) {
			t.Errorf("summary: %+v", got)
		}
		all := s.Redrive(t, "list", "orders.dlq", "--all", "--class", "tax", "--limit", "1", "-o", "jsonl")
		if got := s.Redrive(t, "show", "orders.dlq", roottest.Places(t, all)[0]); !strings.Contains(got.Stdout, "STATE         succeeded\n") || !strings.Contains(got.Stdout, "by oncall, to orders.retry.1s/") {
			t.Errorf("show: %+v", got)
		}
		// Whatever is left is of another class.
		roottest.Prints(t, s.Redrive(t, "run", "orders.dlq", "--class", "tax"), cli.ExitRefused, "", "redrive: orders.dlq: refused: nothing selected: ")
	})
}

func TestRun_AbortsWhereAClassFailsAgain(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--class", "payment", "-o", "jsonl"}, roottest.Fast...)...)
		o := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitFailedAgain || o.State != "aborted" || o.Sent != 1 || o.Cause == nil || !strings.Contains(*o.Cause, "failed again with payment") {
			t.Errorf("%+v", got)
		}
		roottest.InOrder(t, got.Stderr, "not sent, still open: 39 letters\nfailures:\n  letter orders.dlq/", ": payment: the bank said no\n    redrive show orders.dlq ", "redrive: "+o.Run+" aborted: letter orders.dlq/")
		// The letter is open again: it came back as a new one.
		roottest.Prints(t, s.Redrive(t, "summary", "orders.dlq", "-o", "json"), cli.ExitDone, `"open":100,"pending":0,"resolved":1,`, "")
	})
}

// An operator forgot the filter, and the run took every letter of the topic.
func TestRun_AsksForTheNumberOfAllLetters(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		s.Fix("payment")
		const question = "no flag chooses letters: all 100 letters of orders.dlq will be redriven, to orders.retry.1s; type 100 to continue:\n"
		for typed, message := range map[string]string{
			"":     "100 was not typed, nothing was done: --yes skips the question\n",
			"y\n":  `"y" is not 100, nothing was done`,
			"60\n": `"60" is not 100, nothing was done`,
		} {
			i := s.As()
			i.Stdin = typed
			got := i.Run(t, "run", "orders.dlq")
			roottest.Prints(t, got, cli.ExitRefused, "", message, typed)
			if !strings.HasPrefix(got.Stderr, question) {
				t.Errorf("it asks %q", got.Stderr)
			}
		}
		roottest.Prints(t, s.Redrive(t, "runs", "orders.dlq"), cli.ExitDone, "", "orders.dlq has no runs")
		// It is not asked about letters that were chosen, or with --yes.
		for _, args := range [][]string{{"--class", "tax", "--partition", "0"}, {"--class", "tax", "--yes"}, {"--max-redrives", "5", "--yes"}} {
			got := s.Redrive(t, slices.Concat([]string{"run", "orders.dlq"}, args, roottest.Fast)...)
			if got.Code != cli.ExitDone || strings.Contains(got.Stderr, "type ") {
				t.Errorf("%q: %+v", args, got)
			}
		}
		if records, _ := s.Processed(); records != 100 {
			t.Errorf("%d records were processed", records)
		}
	})
}

// The bank was not up yet. With the policy's attempts each letter would go through all retry topics
// again, and be a dead letter much later.
func TestRun_BoundsTheAttemptsOfItsCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := roottest.NewNight(t, demo.Bug{Class: "payment", Message: "the bank is away", Records: 40, Retried: true})
		if _, err := n.Fail(t.Context()); err != nil {
			t.Fatal(err)
		}
		played := n.Play(`
    $ redrive plan orders.dlq --class payment --max-attempts 2
<!-- night: exits 3 -->
    $ redrive run orders.dlq --class payment --max-attempts 2 --canary 0 --rate 0 --tolerate 40,100% --window 1m
    $ redrive list orders.dlq --class payment --attempts 2 -o jsonl
    $ redrive list orders.dlq --class payment --attempts 3 -o jsonl
`)
		for part, want := range map[string]int{"--attempts 2 -o jsonl\n": 40, "--attempts 3 -o jsonl\n": 0} {
			_, list, _ := strings.Cut(played, part)
			list, _, _ = strings.Cut(list, "$ ")
			if got := strings.Count(list, `"class":"payment"`); got != want {
				t.Errorf("%d open letters with %s, want %d", got, part, want)
			}
		}
		roottest.InOrder(t, played, "MAX ATTEMPTS   2\n", "FAILED AGAIN  40\n")
	})
	for value, message := range map[string]string{"-1": "--max-attempts is -1: it is at least 1", "1000000000": "--max-attempts is 1000000000: it is at least 1", "two": `--max-attempts: "two" is not a whole number`} {
		roottest.Prints(t, roottest.Invocation{}.Run(t, "run", "orders.dlq", "--max-attempts="+value), cli.ExitUsage, "", message)
	}
}

// What retention took of a frozen selection is not sent, and the run counts it: it does not fail
// for it.
func TestRun_CountsLettersThatExpiredSince(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		o := s.InterruptedRun(t)
		for p := range int32(4) {
			s.DeleteTo(t, "orders.dlq", p, -1)
		}
		got := s.Redrive(t, "resume", o.Run, "-o", "json")
		end := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || end.State != "done" || end.Sent != o.Sent || end.Succeeded != o.Sent || end.Skipped["expired"] != 60-o.Sent {
			t.Errorf("%+v", got)
		}
		if records, calls := s.Processed(); records != int(o.Sent) || calls != records {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if got := s.Redrive(t, "status", o.Run); !strings.Contains(got.Stdout, "NOT SENT      ") || !strings.Contains(got.Stdout, " letters: expired\n") {
			t.Errorf("%+v", got)
		}
	})
}

// All letters of a stored plan expired before it was run. The run was done, with exit code 0.
func TestRun_SendingNothingIsNoSuccess(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.IncidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		file := filepath.Join(t.TempDir(), "p.plan")
		s.Redrive(t, "plan", "orders.dlq", "--save", file)
		for p := range int32(4) {
			s.DeleteTo(t, "orders.dlq", p, -1)
		}
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--plan", file, "-o", "json"}, roottest.Fast...)...)
		o := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitNotSent || o.State != "done" || !strings.HasSuffix(got.Stderr, "redrive: "+o.Run+" is done, and it sent nothing: 20 letters: expired\n") {
			t.Errorf("%+v", got)
		}
	})
}
