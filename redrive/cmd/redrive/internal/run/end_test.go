package run_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A run ended with exit code 0 although no outcome was known.
func TestFinish_ExitCodeShowsTheOutcomes(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	s := roottest.InTrouble(t)
	s.Fix("tax")
	for flag, want := range map[string]int{"": cli.ExitPending, "--no-wait": cli.ExitDone} {
		i := s.As()
		var hangs sync.Once
		i.Watch = func(words string) {
			if strings.HasPrefix(words, "the canary succeeded") {
				hangs.Do(s.Hang) // and every handler with it
			}
		}
		args := append([]string{"run", "orders.dlq", "--class", "tax", "-o", "json", "--partition"}, map[string]string{"": "0", "--no-wait": "1"}[flag])
		if flag != "" {
			args = append(args, flag)
		}
		got := i.Run(t, append(args, roottest.Fast...)...)
		hangs.Do(func() {
			t.Errorf("the canary did not succeed: %+v", got)
			s.Hang()
		})
		s.Unhang()
		o := roottest.OutcomeOf(t, got.Stdout)
		message := fmt.Sprintf("redrive: %s is done, without an outcome yet for %s\n", o.Run, cli.Letters(o.Pending))
		if got.Code != want || o.State != "done" || o.Pending == 0 || o.Failed != 0 || strings.HasSuffix(got.Stderr, message) != (want == cli.ExitPending) {
			t.Errorf("pending, %q: %+v", flag, got)
		}
	}
}

// A run aborted itself while the disk of stdout was full. It ended with exit code 1, and did not
// say that a letter failed.
func TestFinish_ABrokenStdoutHidesNoFailure(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.IncidentOf(t, demo.Bug{Class: "payment", Message: "the bank said no", Records: 10})
		i := s.As()
		i.Full = true
		got := i.Run(t, append([]string{"run", "orders.dlq", "--yes", "-o", "json"}, roottest.Fast...)...)
		if got.Code != cli.ExitFailedAgain {
			t.Errorf("%+v", got)
		}
		roottest.InOrder(t, got.Stderr, "not sent, still open: 9 letters\nfailures:\n", "redrive: orders.dlq/", " aborted: letter orders.dlq/", "\n  the outcome could not be printed: no space left on device\n")
	})
}
