package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

func TestAbort_EndsARunOfAnotherProcess(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		var aborted roottest.Result
		var name string
		got := s.WhileSending(t, "5", func(run string) {
			name, aborted = run, s.Redrive(t, "abort", run, "-o", "json")
		})
		o := roottest.OutcomeOf(t, aborted.Stdout)
		if aborted.Code != cli.ExitDone || o.State != "aborted" || o.Sent == o.Selected || !strings.Contains(aborted.Stderr, "the run was still active: oncall on ") ||
			!strings.Contains(aborted.Stderr, fmt.Sprintf("\nnot sent, still open: %d letters\n", o.Selected-o.Sent)) {
			t.Errorf("abort: %+v", aborted)
		}
		// The process that lost the run reports that, and the run's state.
		if o := roottest.OutcomeOf(t, got.Stdout); got.Code != cli.ExitError || o.State != "aborted" || !strings.Contains(got.Stderr, ": it was aborted by oncall on ") ||
			strings.Contains(got.Stderr, "unfinished") || strings.Contains(got.Stderr, "EPOCH") || strings.Count(got.Stderr, "canary: ") != 1 {
			t.Errorf("run: %+v", got)
		}
		roottest.Prints(t, s.Redrive(t, "abort", name), cli.ExitDone, "STATE         aborted\n", "run "+name+" had already ended, and nothing was changed\n")
	})
}
