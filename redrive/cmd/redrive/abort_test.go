package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
)

func TestAbort_EndsARunOfAnotherProcess(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T) {
		s := inTrouble(t)
		s.Fix("tax")
		var aborted result
		var name string
		got := s.whileSending(t, "5", func(run string) {
			name, aborted = run, s.redrive(t, "abort", run, "-o", "json")
		})
		o := outcomeOf(t, aborted.stdout)
		if aborted.code != cli.ExitDone || o.State != "aborted" || o.Sent == o.Selected || !strings.Contains(aborted.stderr, "the run was still active: oncall on ") ||
			!strings.Contains(aborted.stderr, fmt.Sprintf("\nnot sent, still open: %d letters\n", o.Selected-o.Sent)) {
			t.Errorf("abort: %+v", aborted)
		}
		// The process that lost the run reports that, and the run's state.
		if o := outcomeOf(t, got.stdout); got.code != cli.ExitError || o.State != "aborted" || !strings.Contains(got.stderr, ": it was aborted by oncall on ") ||
			strings.Contains(got.stderr, "unfinished") || strings.Contains(got.stderr, "EPOCH") || strings.Count(got.stderr, "canary: ") != 1 {
			t.Errorf("run: %+v", got)
		}
		prints(t, s.redrive(t, "abort", name), cli.ExitDone, "STATE         aborted\n", "run "+name+" had already ended, and nothing was changed\n")
	})
}
