package main

import (
	"strings"
	"testing"
)

// Thirty flags in the order of the alphabet are none that one finds.
func TestHelp_PutsFlagsAndVerbsUnderHeadings(t *testing.T) {
	t.Parallel()
	got := invocation{}.run(t, "run", "--help")
	inOrder(t, got.stdout,
		"Usage:\n  redrive run TOPIC [flags]\n", "\nExamples:\n", "\nWhich letters:\n", "--class", "--where", "\nWhere to:\n", "--target", "\nChanges to the records:\n", "--patch",
		"\nHow fast, and when to stop:\n", "--rate", "\nFor the ledger:\n", "--by", "--why", "\nConnection, names, output:\n", "--brokers",
	)
	inOrder(t, invocation{}.run(t).stdout, "\nSee what is there:\n  topics ", "\nRedrive:\n  plan ", "\nDiscard, keep, delete:\n  discard ", "\nOthers:\n  demo ", "\nFlags:\n")
}

// A resumed run keeps its pace, so resume has no default of its own, and offers nothing that it
// refuses.
func TestHelp_OfResumeNamesNoOtherDefault(t *testing.T) {
	t.Parallel()
	_, pace, _ := strings.Cut(invocation{}.run(t, "resume", "--help").stdout, "\nHow fast, and when to stop:\n")
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
	for _, verb := range newCommands().Commands() {
		own := verb.Name() != "completion" && verb.Name() != "help" // those are cobra's
		if own && (verb.Short == "" || verb.Long == "" || len(commandsIn(verb.Example)) != strings.Count(verb.Example, "\n")+1) {
			t.Errorf("%s has no short help, long help or examples that are commands", verb.Name())
		}
	}
}
