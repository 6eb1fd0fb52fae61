package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
)

func TestRun_RedrivesAFixedClassAndRecordsIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		s.Fix("tax")
		got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "tax", "--why", "OPS-1", "-o", "json"}, fast...)...)
		o := outcomeOf(t, got.stdout)
		if got.code != cli.ExitDone || o.State != "done" || o.Selected != 60 || o.Sent != 60 || o.Succeeded != 60 || o.Failed+o.Pending+o.Unknown != 0 || o.By != "oncall" || *o.Why != "OPS-1" || o.Ended == nil {
			t.Errorf("%+v", got)
		}
		inOrder(t, got.stderr, "run "+o.Run+": 60 letters to orders.retry.1s", "canary: sending the first records", "the canary succeeded; sending\n", "all is sent")
		if strings.ContainsAny(got.stderr, "\r\x1b") {
			t.Errorf("there is a bar without a terminal: %q", got.stderr)
		}
		if records, calls := s.Processed(); records != 60 || calls != 60 {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if again := outcomeOf(t, s.redrive(t, "status", o.Run, "-o", "json").stdout); again.Succeeded != 60 || again.State != "done" {
			t.Errorf("status: %+v", again)
		}
		if got := s.redrive(t, "status", o.Run); !strings.Contains(got.stdout, "SUCCEEDED     60\n") || strings.Contains(got.stdout, "HEARTBEAT") || got.stderr != "" {
			t.Errorf("status: %+v", got)
		}
		var listed []outcome
		if err := json.Unmarshal([]byte(s.redrive(t, "runs", "orders.dlq", "-o", "json").stdout), &listed); err != nil || len(listed) != 1 || listed[0].Run != o.Run || listed[0].Succeeded != 60 {
			t.Errorf("runs: %+v, %v", listed, err)
		}
		if got := s.redrive(t, "summary", "orders.dlq", "-o", "json"); !strings.Contains(got.stdout, `"open":40,"pending":0,"resolved":60,`) || strings.Contains(got.stdout, `"class":"tax"`) {
			t.Errorf("summary: %+v", got)
		}
		all := s.redrive(t, "list", "orders.dlq", "--all", "--class", "tax", "--limit", "1", "-o", "jsonl")
		if got := s.redrive(t, "show", "orders.dlq", places(t, all)[0]); !strings.Contains(got.stdout, "STATE         succeeded\n") || !strings.Contains(got.stdout, "by oncall, to orders.retry.1s/") {
			t.Errorf("show: %+v", got)
		}
		// Whatever is left is of another class.
		prints(t, s.redrive(t, "run", "orders.dlq", "--class", "tax"), cli.ExitRefused, "", "redrive: orders.dlq: refused: nothing selected: ")
	})
}

func TestRun_AbortsWhereAClassFailsAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "payment", "-o", "jsonl"}, fast...)...)
		o := outcomeOf(t, got.stdout)
		if got.code != cli.ExitFailedAgain || o.State != "aborted" || o.Sent != 1 || o.Cause == nil || !strings.Contains(*o.Cause, "failed again with payment") {
			t.Errorf("%+v", got)
		}
		inOrder(t, got.stderr, "not sent, still open: 39 letters\nfailures:\n  letter orders.dlq/", ": payment: the bank said no\n    redrive show orders.dlq ", "redrive: "+o.Run+" aborted: letter orders.dlq/")
		// The letter is open again: it came back as a new one.
		prints(t, s.redrive(t, "summary", "orders.dlq", "-o", "json"), cli.ExitDone, `"open":100,"pending":0,"resolved":1,`, "")
	})
}

// An operator forgot the filter, and the run took every letter of the topic.
func TestRun_AsksForTheNumberOfAllLetters(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		s.Fix("tax")
		s.Fix("payment")
		const question = "no flag chooses letters: all 100 letters of orders.dlq will be redriven, to orders.retry.1s; type 100 to continue:\n"
		for typed, says := range map[string]string{
			"":     "100 was not typed, nothing was done: --yes skips the question\n",
			"y\n":  `"y" is not 100, nothing was done`,
			"60\n": `"60" is not 100, nothing was done`,
		} {
			i := s.as()
			i.stdin = typed
			got := i.run(t, "run", "orders.dlq")
			prints(t, got, cli.ExitRefused, "", says, typed)
			if !strings.HasPrefix(got.stderr, question) {
				t.Errorf("it asks %q", got.stderr)
			}
		}
		prints(t, s.redrive(t, "runs", "orders.dlq"), cli.ExitDone, "", "orders.dlq has no runs")
		// It is not asked about letters that were chosen, or with --yes.
		for _, args := range [][]string{{"--class", "tax", "--partition", "0"}, {"--class", "tax", "--yes"}, {"--max-redrives", "5", "--yes"}} {
			got := s.redrive(t, slices.Concat([]string{"run", "orders.dlq"}, args, fast)...)
			if got.code != cli.ExitDone || strings.Contains(got.stderr, "type ") {
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
		n := newNight(t, demo.Bug{Class: "payment", Message: "the bank is away", Records: 40, Retried: true})
		if _, err := n.Fail(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := n.tell(`
    $ redrive plan orders.dlq --class payment --max-attempts 2
<!-- night: exits 3 -->
    $ redrive run orders.dlq --class payment --max-attempts 2 --canary 0 --rate 0 --tolerate 40,100% --window 1m
    $ redrive list orders.dlq --class payment --attempts 2 -o jsonl
    $ redrive list orders.dlq --class payment --attempts 3 -o jsonl
`)
		for part, want := range map[string]int{"--attempts 2 -o jsonl\n": 40, "--attempts 3 -o jsonl\n": 0} {
			_, list, _ := strings.Cut(told, part)
			list, _, _ = strings.Cut(list, "$ ")
			if got := strings.Count(list, `"class":"payment"`); got != want {
				t.Errorf("%d open letters with %s, want %d", got, part, want)
			}
		}
		inOrder(t, told, "MAX ATTEMPTS   2\n", "FAILED AGAIN  40\n")
	})
	for value, says := range map[string]string{"-1": "--max-attempts is -1: it is at least 1", "1000000000": "--max-attempts is 1000000000: it is at least 1", "two": `--max-attempts: "two" is not a whole number`} {
		prints(t, invocation{}.run(t, "run", "orders.dlq", "--max-attempts="+value), cli.ExitUsage, "", says)
	}
}

// What retention took of a frozen selection is not sent, and the run says so: it does not fail for
// it.
func TestRun_CountsLettersThatExpiredSince(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		o := s.interruptedRun(t)
		for p := range int32(4) {
			s.deleteTo(t, "orders.dlq", p, -1)
		}
		got := s.redrive(t, "resume", o.Run, "-o", "json")
		end := outcomeOf(t, got.stdout)
		if got.code != cli.ExitDone || end.State != "done" || end.Sent != o.Sent || end.Succeeded != o.Sent || end.Skipped["expired"] != 60-o.Sent {
			t.Errorf("%+v", got)
		}
		if records, calls := s.Processed(); records != int(o.Sent) || calls != records {
			t.Errorf("%d were processed, in %d calls", records, calls)
		}
		if got := s.redrive(t, "status", o.Run); !strings.Contains(got.stdout, "NOT SENT      ") || !strings.Contains(got.stdout, " letters: expired\n") {
			t.Errorf("%+v", got)
		}
	})
}

// All letters of a stored plan expired before it was run. The run was done, with exit code 0.
func TestRun_SendingNothingIsNoSuccess(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := incidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 20})
		file := filepath.Join(t.TempDir(), "p.plan")
		s.redrive(t, "plan", "orders.dlq", "--save", file)
		for p := range int32(4) {
			s.deleteTo(t, "orders.dlq", p, -1)
		}
		got := s.redrive(t, append([]string{"run", "orders.dlq", "--plan", file, "-o", "json"}, fast...)...)
		o := outcomeOf(t, got.stdout)
		if got.code != cli.ExitNotSent || o.State != "done" || !strings.HasSuffix(got.stderr, "redrive: "+o.Run+" is done, and it sent nothing: 20 letters: expired\n") {
			t.Errorf("%+v", got)
		}
	})
}
