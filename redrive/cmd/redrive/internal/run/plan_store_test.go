package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/demo"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A plan is reviewed by one person, and run by a job on another machine.
func TestPlan_IsSavedAndRun(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.InTrouble(t)
		s.Fix("tax")
		file := filepath.Join(t.TempDir(), "tax.plan")
		hint := "the plan is in " + file + ": redrive run orders.dlq --plan " + file + " --rate=20 --tolerate=3,25% --ramp=0s runs it\n"
		roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "--class", "tax", "--save", file, "--rate", "20", "--ramp", "0", "--tolerate", "3,25%"), cli.ExitDone, "LETTERS        60\n", hint)
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file is %v, %v", info.Mode(), err)
		}
		roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "--class", "tax", "--save", file), cli.ExitError, "", "the plan was not saved: "+file+" already exists and is never overwritten")
		roottest.Prints(t, s.Redrive(t, "discard", "orders.dlq", "--class", "tax", "--partition", "0", "--why", "x", "--yes"), cli.ExitDone, "DISCARDED", "")
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--plan", file, "--why", "OPS-1", "-o", "json"}, roottest.Fast...)...)
		o := roottest.OutcomeOf(t, got.Stdout)
		if got.Code != cli.ExitDone || o.State != "done" || o.Selected != 60 || o.Sent == 60 || o.Sent == 0 || o.Succeeded != o.Sent {
			t.Errorf("%+v", got)
		}
		roottest.Prints(t, s.Redrive(t, "run", "orders.dlq", "--plan", file), cli.ExitRefused, "", "the plan was run already, as "+o.Run)
	})
}

// A run of a stored plan showed the warnings of the file, and none of its own.
func TestRun_ShowsTheWarningsOfAStoredPlanAsOfNow(t *testing.T) {
	t.Parallel()
	roottest.Virtual(t, func(t *testing.T) {
		s := roottest.IncidentOf(t, demo.Bug{Class: "tax", Message: "no rate", Records: 2})
		s.Topic(t, "copies", 4, nil)
		file := filepath.Join(t.TempDir(), "tax.plan")
		const warning = "warning: the outcomes of the letters will not be known, and there is no canary: copies is neither the source topic orders nor its retry topic"
		roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "--target", "copies", "--save", file), cli.ExitDone, "copies", warning)
		got := s.Redrive(t, append([]string{"run", "orders.dlq", "--plan", file}, roottest.Fast...)...)
		if roottest.InOrder(t, got.Stderr, "2 letters to copies", warning); strings.Count(got.Stderr, "warning: ") != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestPlan_RefusesAStoredOneThatIsNotWhole(t *testing.T) {
	t.Parallel()
	s := roottest.InTrouble(t)
	file := filepath.Join(t.TempDir(), "tax.plan")
	roottest.Prints(t, s.Redrive(t, "plan", "orders.dlq", "--class", "tax", "--save", file), cli.ExitDone, "LETTERS        60\n", "the plan is in ")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	for name, c := range map[string]struct{ args, want string }{
		"edited":   {"orders.dlq --plan " + roottest.Save(t, strings.Replace(whole, `"letters": 60`, `"letters": 59`, 1)), "can't be run: stored plan: it is not as it was stored"},
		"cut":      {"orders.dlq --plan " + roottest.Save(t, whole[:1000]), "can't be run: unexpected end of JSON input; redrive plan orders.dlq --save makes another"},
		"missing":  {"orders.dlq --plan " + file + ".not", "--plan: open "},
		"of other": {"bills.dlq --plan " + file, "is a plan of orders.dlq, not of bills.dlq"},
		"filters":  {"orders.dlq --class tax --wait --plan " + file, "--plan has its own letters, target and changes: omit --class, --wait"},
	} {
		if got := s.Redrive(t, append([]string{"run"}, strings.Fields(c.args)...)...); got.Code != cli.ExitUsage || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
