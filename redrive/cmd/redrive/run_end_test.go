package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// A run ended with exit code 0 although all its letters failed again and were tolerated, or
// although no outcome was known.
func TestFinish_ExitCodeShowsTheOutcomes(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s := inTrouble(t)
	got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "payment", "--canary", "0", "--tolerate", "40,100%", "-o", "json"}, fast...)...)
	o := outcomeOf(t, got.stdout)
	if got.code != cli.ExitFailedAgain || o.State != "done" || o.Failed != 40 || !strings.HasSuffix(got.stderr, "redrive: "+o.Run+" is done, and 40 letters failed again: redrive summary orders.dlq shows the causes\n") {
		t.Errorf("failed: %+v", got)
	}

	s.fix("tax")
	for flag, want := range map[string]int{"": cli.ExitPending, "--no-wait": cli.ExitDone} {
		i := s.as()
		var hangs sync.Once
		i.heard = func(words string) {
			if strings.HasPrefix(words, "the canary succeeded") {
				hangs.Do(s.mu.Lock) // and every handler with it
			}
		}
		args := append([]string{"run", "orders.dlq", "--class", "tax", "-o", "json", "--partition"}, map[string]string{"": "0", "--no-wait": "1"}[flag])
		if flag != "" {
			args = append(args, flag)
		}
		got := i.run(t, append(args, fast...)...)
		hangs.Do(func() {
			t.Errorf("the canary did not succeed: %+v", got)
			s.mu.Lock()
		})
		s.mu.Unlock()
		o := outcomeOf(t, got.stdout)
		says := fmt.Sprintf("redrive: %s is done, without an outcome yet for %s\n", o.Run, cli.Letters(o.Pending))
		if got.code != want || o.State != "done" || o.Pending == 0 || o.Failed != 0 || strings.HasSuffix(got.stderr, says) != (want == cli.ExitPending) {
			t.Errorf("pending, %q: %+v", flag, got)
		}
	}
}

// A run aborted itself while the disk of stdout was full. It ended with exit code 1, and did not
// say that a letter failed.
func TestFinish_ABrokenStdoutHidesNoFailure(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := incidentOf(t, bug{"payment", "the bank said no", 10, false})
		i := s.as()
		i.full = true
		got := i.run(t, append([]string{"run", "orders.dlq", "--yes", "-o", "json"}, fast...)...)
		if got.code != cli.ExitFailedAgain {
			t.Errorf("%+v", got)
		}
		inOrder(t, got.stderr, "not sent, still open: 9 letters\nfailures:\n", "redrive: orders.dlq/", " aborted: letter orders.dlq/", "\n  the outcome could not be printed: no space left on device\n")
	})
}

// A letter that failed again and waits in a retry topic counted as pending: the exit code was 5, or
// 0 with --no-wait. A run that sent nothing ended with 0: a Kubernetes Job was complete.
func TestUnfinishedError_ExitCodeByCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts redrive.Counts
		noWait bool
		want   int
		says   string
	}{
		{redrive.Counts{Succeeded: 2, Discarded: 1, Unknown: 1, Unfollowed: 1}, false, 0, ""},
		{redrive.Counts{Succeeded: 2, Failed: 1}, false, 3, "1 letter failed again: redrive summary orders.dlq shows the causes"},
		{redrive.Counts{Failed: 1, Pending: 1}, true, 3, "1 letter failed again: redrive summary orders.dlq shows the causes"},
		{redrive.Counts{Succeeded: 2, Pending: 5, Retrying: 1}, false, 3, "1 letter failed again (1 in a retry topic): redrive status orders.dlq/r-1 reports their outcomes"},
		{redrive.Counts{Pending: 2, Retrying: 2}, true, 3, "2 letters failed again (2 in a retry topic): redrive status orders.dlq/r-1 reports their outcomes"},
		{redrive.Counts{Failed: 3, Pending: 2, Retrying: 2}, true, 3, "5 letters failed again (2 in a retry topic): redrive summary orders.dlq shows the causes"},
		{redrive.Counts{Succeeded: 2, Pending: 1}, false, 5, "without an outcome yet for 1 letter"},
		{redrive.Counts{Succeeded: 2, Pending: 1}, true, 0, ""},
		{redrive.Counts{Selected: 3, Sent: 2, Succeeded: 2, Skipped: map[string]int64{redrive.SkippedExpired: 1}}, false, 0, ""},
		{redrive.Counts{Selected: 3, Sent: 2, Succeeded: 2, Skipped: map[string]int64{redrive.SkippedTooLarge: 1}}, false, 6, "could not send 1 letter, still open: redrive status orders.dlq/r-1 shows why"},
		{redrive.Counts{Selected: 3, Sent: 2, Succeeded: 1, Failed: 1, Skipped: map[string]int64{redrive.SkippedTooLarge: 1}}, false, 3, "shows the causes"},
		{redrive.Counts{Selected: 3, Sent: 2, Pending: 2, Skipped: map[string]int64{redrive.SkippedTooLarge: 1}}, true, 6, "shows why"},
		{redrive.Counts{Selected: 3, Skipped: map[string]int64{redrive.SkippedExpired: 2, redrive.SkippedTooLarge: 1}}, true, 6, "done, and it sent nothing: 2 letters: expired; 1 letter: too large for the target"},
	} {
		err := unfinishedError(redrive.Outcome{Topic: "orders.dlq", ID: "r-1", State: redrive.Done, Counts: c.counts}, c.noWait)
		if got := cli.ExitCode(err); got != c.want || err != nil && !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("%+v, %v: exit code %d, %v; want %d, %s", c.counts, c.noWait, got, err, c.want, c.says)
		}
	}
}

// The report of an unfinished selection counts the open letters. Some skipped letters are open,
// others are not.
func TestReportLeft_ReportsWhatARunLeavesBehind(t *testing.T) {
	t.Parallel()
	tl, words := clitest.NewTool(nil)
	o := redrive.Outcome{Topic: "orders.dlq", ID: "r-1", State: redrive.Aborted}
	o.Counts = redrive.Counts{Selected: 60, Sent: 12, Failed: 1, Retrying: 11, Pending: 11, Skipped: map[string]int64{
		redrive.SkippedExpired: 3, redrive.SkippedResolved: 5, redrive.SkippedEdit: 2,
	}}
	reportLeft(tl, o)
	seen := []redrive.Failure{{Record: "orders.retry.1s/0/1", Letter: "orders.dlq/0/1", Class: "tax", Message: "no"}, {Record: "orders.dlq/0/7", Class: "tax", Message: "no"}}
	showFailures(tl, &redrive.FailedAgainError{Seen: seen}, o)
	want := `not sent, still open: 40 letters
redrive status orders.dlq/r-1 reports the outcomes of the pending letters later
failures:
  letter orders.dlq/0/1, at orders.retry.1s/0/1: tax: no
  new traffic, at orders.dlq/0/7: tax: no
    redrive show orders.dlq 0:7
  and 11 letters more failed again
`
	if got := words.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	words.Reset()
	if reportLeft(tl, redrive.Outcome{Counts: redrive.Counts{Selected: 2, Sent: 2, Succeeded: 2}}); words.String() != "" {
		t.Errorf("nothing is left, and it says %s", words.String())
	}
}
