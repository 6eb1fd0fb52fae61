package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sums are by commit and broker, without the runs that could not be made.
func TestPrintResults_SumsByCommitAndBroker(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.jsonl")
	for _, rep := range []Report{
		{Commit: "b1", Broker: "kfake", Minutes: 3, Records: 100, Runs: 150, Faults: map[string]int{"kill": 2, "cut": 1}, Verdict: verdictHeld},
		{Commit: "b1", Broker: "kafka", Minutes: 5, Records: 7, Runs: 8, Faults: map[string]int{"kill": 1}, Verdict: verdictHeld},
		{Commit: "a2", Broker: "kfake", Minutes: 2, Records: 1, Runs: 2, Verdict: verdictHeld},
		{Commit: "b1", Broker: "kfake", Minutes: 3, Records: 10, Runs: 20, Faults: map[string]int{"kill": 3}, Verdict: "broken stuck:1"},
		{Commit: "b1", Broker: "kafka", Verdict: "not made: no broker"},
	} {
		if err := rep.append(name); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := printResults(&out, name)
	want := name + ", b1, kfake: 2 runs, 1 held, 6 minutes; 110 records, 170 runs of handlers, 6 faults\n" +
		name + ", b1, kafka: 1 runs, 1 held, 5 minutes; 7 records, 8 runs of handlers, 1 faults\n" +
		name + ", a2, kfake: 1 runs, 1 held, 2 minutes; 1 records, 2 runs of handlers, 0 faults\n"
	if got := out.String(); err != nil || got != want {
		t.Errorf("printed %q, %v; want %q", got, err, want)
	}
}

func TestPrintResults_NamesTheLineThatIsNone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(name, []byte("{}\nno line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printResults(&out, name); err == nil || !strings.Contains(err.Error(), "line 2") || out.Len() > 0 {
		t.Errorf("printed %q, %v; want nothing, and an error about line 2", out.String(), err)
	}
}
