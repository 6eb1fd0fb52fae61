package subject_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Every verb that takes a topic prints the same about one that is not there, or that is not a
// dead-letter topic, and does nothing.
func TestFindTopic_NamesWhatIsNoDeadLetterTopic(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for verb, more := range map[string][]string{
		"summary": nil, "list": nil, "show": {"0:0"}, "discard": {"--why", "x", "--yes"}, "export": nil, "import": {roottest.Save(t, "")}, "prune": nil, "plan": nil, "run": nil, "runs": nil,
		"status": nil, "abort": nil, "resume": nil,
	} {
		for topic, want := range map[string]struct {
			code    int
			message string
		}{
			"order.dlq": {cli.ExitError, "redrive: topic order.dlq does not exist: redrive topics --quick lists those that there are\n"},
			"orders":    {cli.ExitUsage, "redrive: orders is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another); did you mean orders.dlq?\n"},
			// it suggested a topic that did not exist
			"orders.dlq.riskd":  {cli.ExitUsage, "redrive: orders.dlq.riskd is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another)\n"},
			"orders.dlq.ledger": {cli.ExitUsage, "redrive: orders.dlq.ledger is a ledger by its name, so it has no dead letters; did you mean orders.dlq?\n"},
		} {
			if verb == "status" || verb == "abort" || verb == "resume" {
				topic += "/20260102-150405-a1b2c3"
			}
			got := b.Redrive(t, append([]string{verb, topic}, more...)...)
			if got.Code != want.code || got.Stdout != "" || !strings.HasPrefix(got.Stderr, want.message) {
				t.Errorf("%s %s: %+v, want %+v", verb, topic, got, want)
			}
		}
	}
	for _, verb := range []string{"status", "abort", "resume"} {
		roottest.Exactly(t, b.Redrive(t, verb, "orders.dlq/none"), cli.ExitError, "", "redrive: orders.dlq: run none: there is no such run: redrive runs orders.dlq lists the runs that there are\n", verb)
		if got := b.Redrive(t, verb, "none"); got.Code != cli.ExitUsage || !strings.HasPrefix(got.Stderr, `redrive: "none" is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them`) {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

func TestFindTopic_RefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	for _, verb := range readers {
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{}, cli.ExitUsage, "TOPIC is missing: redrive " + verb[0] + " TOPIC"},
			{[]string{"orders.dlq", "--partition", "2"}, cli.ExitUsage, "orders.dlq has no partition 2: it has 2, from 0 on"},
			{[]string{"orders.dlq", "--reason", "bad luck", "--since", "x"}, cli.ExitUsage, "  --since: "},
		} {
			got := b.Redrive(t, append(append([]string{}, verb...), c.args...)...)
			roottest.Prints(t, got, c.code, "", c.want, c.args)
		}
	}
}

// A ledger's name may fit another group's template of dead-letter topics: with {topic}.dlq.{group}
// the ledger orders.dlq.ledger was the dead-letter topic of a group "ledger", and prune was about
// to delete its entries.
func TestFindTopic_TakesNoLedgerForADeadLetterTopic(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t) // with orders.dlq.ledger, of the default naming
	b.Topic(t, "orders.dlq.audit", 1, map[string]string{"cleanup.policy": "compact"})
	b.Topic(t, "orders.dlq.riskd", 1, nil)
	grouped := []string{"--retry-name", "{topic}.retry.{group}.{delay}", "--dlq-name", "{topic}.dlq.{group}", "--ledger-name", "{topic}.dlq.{group}.ledger"}
	for _, verb := range []string{"summary", "list", "show", "discard", "reopen", "export", "import", "prune", "plan", "run", "runs", "status", "abort", "resume"} {
		for topic, want := range map[string]struct {
			code    int
			message string
		}{
			"orders.dlq.ledger": {cli.ExitUsage, "redrive: orders.dlq.ledger is a ledger by its name, so it has no dead letters\n"},
			"orders.dlq.audit":  {cli.ExitError, "redrive: orders.dlq.audit is compacted, as ledgers are: by its name it is a dead-letter topic, which must not be compacted. "},
		} {
			args := map[string][]string{
				"show": {"0:0"}, "import": {roottest.Save(t, "")}, "prune": {"--older-than", "1s", "--yes"}, "discard": {"--why", "x", "--yes"}, "reopen": {"--why", "x", "--yes"}, "run": {"--yes"},
			}[verb]
			if verb == "status" || verb == "abort" || verb == "resume" {
				topic += "/20260102-150405-a1b2c3"
			}
			got := b.Redrive(t, slices.Concat([]string{verb, topic}, args, grouped)...)
			if got.Code != want.code || got.Stdout != "" || !strings.HasPrefix(got.Stderr, want.message) {
				t.Errorf("%s %s: %+v, want %+v", verb, topic, got, want)
			}
		}
	}
	for _, flag := range []string{"--all", "--quick"} {
		got := b.Redrive(t, slices.Concat([]string{"topics", flag, "-o", "jsonl"}, grouped)...)
		if got.Code != cli.ExitDone || strings.Count(got.Stdout, "\n") != 1 || !strings.Contains(got.Stdout, `{"topic":"orders.dlq.riskd",`) || !strings.HasPrefix(got.Stderr, "warning: orders.dlq.audit is compacted, ") {
			t.Errorf("topics %s: %+v", flag, got)
		}
	}
}
