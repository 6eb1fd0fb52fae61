package run

import (
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
)

// A letter that failed again and waits in a retry topic counted as pending: the exit code was 5, or
// 0 with --no-wait. A run that sent nothing ended with 0: a Kubernetes Job was complete.
func TestUnfinishedError_ExitCodeByCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts  redrive.Counts
		noWait  bool
		want    int
		message string
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
		if got := cli.ExitCode(err); got != c.want || err != nil && !strings.HasSuffix(err.Error(), c.message) {
			t.Errorf("%+v, %v: exit code %d, %v; want %d, %s", c.counts, c.noWait, got, err, c.want, c.message)
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
