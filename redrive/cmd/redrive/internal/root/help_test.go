package root_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Thirty flags in the order of the alphabet are none that one finds.
func TestHelp_PutsFlagsAndVerbsUnderHeadings(t *testing.T) {
	t.Parallel()
	got := roottest.Invocation{}.Run(t, "run", "--help")
	roottest.InOrder(t, got.Stdout,
		"Usage:\n  redrive run TOPIC [flags]\n", "\nExamples:\n", "\nWhich letters:\n", "--class", "--where", "\nWhere to:\n", "--target", "\nChanges to the records:\n", "--patch",
		"\nHow fast, and when to stop:\n", "--rate", "\nFor the ledger:\n", "--by", "--why", "\nConnection, names, output:\n", "--brokers",
	)
	roottest.InOrder(t, roottest.Invocation{}.Run(t).Stdout, "\nSee what is there:\n  topics ", "\nRedrive:\n  plan ", "\nDiscard, keep, delete:\n  discard ", "\nOthers:\n  demo ", "\nFlags:\n")
}

// A resumed run keeps its pace, so resume has no default of its own, and shows nothing that it
// refuses.
func TestHelp_OfResumeNamesNoOtherDefault(t *testing.T) {
	t.Parallel()
	_, pace, _ := strings.Cut(roottest.Invocation{}.Run(t, "resume", "--help").Stdout, "\nHow fast, and when to stop:\n")
	pace, _, _ = strings.Cut(pace, "\n\n")
	for line := range strings.SplitSeq(pace, "\n") {
		if strings.Count(line, "(default") != 1 || !strings.HasSuffix(line, "(default as before)") || strings.Contains(line, "10%") {
			t.Error(line)
		}
	}
}

// TestRoot_KnowsTheDocumentedCommands parses the examples.
func TestHelp_EachVerbHasExamples(t *testing.T) {
	t.Parallel()
	for _, verb := range roottest.NewCommands().Commands() {
		own := verb.Name() != "completion" && verb.Name() != "help" // those are cobra's
		if own && (verb.Short == "" || verb.Long == "" || len(commandsIn(verb.Example)) != strings.Count(verb.Example, "\n")+1) {
			t.Errorf("%s has no short help, long help or examples that are commands", verb.Name())
		}
	}
}

// The reference has each verb. For a while it did not have serve.
func TestHelp_EachVerbIsInTheReference(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../../docs/redrive-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Verbs\n")
	table, _, _ = strings.Cut(table, "\n#")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(table, -1) {
		for _, verb := range regexp.MustCompile("`(\\w+)").FindAllStringSubmatch(row[1], -1) {
			documented = append(documented, verb[1])
		}
	}
	for _, verb := range roottest.NewCommands().Commands() {
		if name := verb.Name(); name != "help" && !slices.Contains(documented, name) {
			t.Errorf("docs/redrive-reference.md has no verb %s, but %v", name, documented)
		}
	}
}
