package serve

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/serve/internal/number"
	"github.com/sidingkafka/siding/serve/internal/rule"
)

// The page has a table of what follows from a criticality. It is what the code has, row by row.
func TestCriticality_ThePageHasTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| criticality | ")
	heads, table, _ := strings.Cut(table, "\n")
	if want := "warn from | page from | new in 5 min above | oldest open letter older than | to be looked at | redriven by |"; heads != want {
		t.Errorf("the columns are %q, want %q", heads, want)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	said := map[string]string{}
	for _, row := range strings.Split(table, "\n")[1:] {
		name, cells, _ := strings.Cut(strings.Trim(row, "| "), " | ")
		said[name] = cells
	}
	for _, is := range []Criticality{Critical, High, Normal, Low, Minor} {
		topic := Topic{Criticality: is}
		got := topic.settings().Thresholds
		name, by := string(is), "operators and rules"
		if is == (&Topic{}).criticality() {
			name += " (default)"
		}
		if topic.manualOnly() {
			by = "operators only; rules with `manual-only: false`"
		}
		looked := "within " + words(got.Oldest)
		if got.PageOpen == 1 {
			looked = "at once"
		}
		want := strings.Join([]string{lettersFrom(got.WarnOpen), lettersFrom(got.PageOpen), lettersFrom(got.New), words(got.Oldest), looked, by}, " | ")
		if said[name] != want {
			t.Errorf("the page says of %s topics %q, want %q", name, said[name], want)
		}
		delete(said, name)
	}
	if len(said) > 0 {
		t.Errorf("the page also has %v", said)
	}
}

// The server takes the files that docs/policies.md shows, and rules are for the topics it says.
func TestCriticality_TheExampleOfThePoliciesIsTaken(t *testing.T) {
	t.Parallel()
	cfg, err := Load("../examples/policies/serve.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rule.Read(cfg.RulesFile, slog.New(slog.DiscardHandler))
	if err != nil || len(rules.Get()) != 1 {
		t.Fatalf("the rules are %+v, %v", rules, err)
	}
	for i := range cfg.Topics {
		is := &cfg.Topics[i]
		if want := is.Match == "payments.dlq" || is.Match == "audit.dlq"; is.manualOnly() != want || is.Criticality == "" {
			t.Errorf("%s: only operators redrive it: %v, of criticality %q", is.Match, is.manualOnly(), is.Criticality)
		}
	}
}

// lettersFrom is a number of letters as the page writes it.
func lettersFrom(n int64) string {
	if n < 0 {
		return "never"
	}
	return number.Format(n)
}

func words(d time.Duration) string {
	switch d {
	case 7 * 24 * time.Hour:
		return "a week"
	case 24 * time.Hour:
		return "a day"
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}
