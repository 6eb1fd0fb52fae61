package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sidingkafka/siding/redrive"
)

// A run whose letters all failed again, and were tolerated, ended with exit code 0, and so did one of whose letters nothing was
// known.
func TestRun_TellsByItsExitCodeWhatItsLettersCameTo(t *testing.T) {
	t.Parallel()
	s := inTrouble(t)
	got := s.redrive(t, append([]string{"run", "orders.dlq", "--class", "payment", "--canary", "0", "--tolerate", "40,100%", "-o", "json"}, fast...)...)
	o := outcomeOf(t, got.stdout)
	if got.code != exitFailedAgain || o.State != "done" || o.Failed != 40 || !strings.HasSuffix(got.stderr, "redrive: "+o.Run+" is done, and 40 letters failed again: redrive summary orders.dlq shows the causes\n") {
		t.Errorf("failed: %+v", got)
	}

	s.fix("tax")
	for flag, want := range map[string]int{"": exitPending, "--no-wait": exitDone} {
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
		says := fmt.Sprintf("redrive: %s is done, without an outcome yet for %s\n", o.Run, letters(o.Pending))
		if got.code != want || o.State != "done" || o.Pending == 0 || o.Failed != 0 || strings.HasSuffix(got.stderr, says) != (want == exitPending) {
			t.Errorf("pending, %q: %+v", flag, got)
		}
	}
}

// A letter that failed again and waits in a retry topic was taken for one of which nothing is known
// yet: 5, and 0 with --no-wait.
func TestExitCode_OfWhatARunCameTo(t *testing.T) {
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
	} {
		err := fellShort(redrive.Outcome{Topic: "orders.dlq", ID: "r-1", State: redrive.Done, Counts: c.counts}, c.noWait)
		if got := exitCode(err); got != c.want || err != nil && !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("%+v, %v: exit code %d, %v; want %d, %s", c.counts, c.noWait, got, err, c.want, c.says)
		}
	}
}

func TestTolerance_IsANumberAShareOrBoth(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		number int
		share  float64
		ok     bool
	}{
		"0,10%": {0, 0.1, true},
		"3":     {3, 0, true}, // the engine's default
		"25%":   {0, 0.25, true},
		"25%,3": {3, 0.25, true},
		"0%":    {0, -1, true}, // the engine's none
		"100%":  {0, 1, true},
		"":      {}, "3,4": {}, "1%,2%": {}, "-1": {}, "101%": {}, "-1%": {}, "NaN%": {}, "%": {}, "x": {}, "1.5": {}, "3,": {},
	} {
		number, share, err := tolerance(text)
		if (err == nil) != want.ok || number != want.number || share != want.share {
			t.Errorf("%q: %d, %g, %v; want %+v", text, number, share, err, want)
		}
	}
	if got := (invocation{}).run(t, "plan", "orders.dlq", "--tolerate", "many"); got.code != exitUsage || !strings.Contains(got.stderr, `--tolerate: "many" is not a number of failures, a share of them or both, such as 3, 25% or 3,25%`) {
		t.Errorf("%+v", got)
	}
}
