package subject_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A refusal is how a verb ends that can't use its topic.
type refusal struct {
	code    int
	message string // how it begins
}

// refuses runs every verb that takes a topic about topics that none of them takes.
func refuses(t *testing.T, b *roottest.Broker, topics map[string]refusal, flags ...string) {
	t.Helper()
	const run = "/20260102-150405-a1b2c3"
	for verb, args := range map[string][]string{
		"summary": nil, "list": nil, "watch": nil, "show": {"0:0"}, "discard": {"--why", "x", "--yes"}, "reopen": {"--why", "x", "--yes"}, "export": nil, "import": {roottest.Save(t, "")},
		"prune": {"--older-than", "1s", "--yes"}, "plan": nil, "run": {"--yes"}, "runs": nil, "status": {run}, "abort": {run}, "resume": {run},
	} {
		for topic, want := range topics {
			line := slices.Concat([]string{verb, topic}, args, flags)
			if len(args) > 0 && args[0] == run {
				line = slices.Concat([]string{verb, topic + run}, flags)
			}
			if got := b.Redrive(t, line...); got.Code != want.code || got.Stdout != "" || !strings.HasPrefix(got.Stderr, want.message) {
				t.Errorf("%s %s: %+v, want %+v", verb, topic, got, want)
			}
		}
	}
}

// Every verb that takes a topic prints the same about one that is not there, or that is not a
// dead-letter topic, and does nothing.
func TestFindTopic_NamesWhatIsNoDeadLetterTopic(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	refuses(t, b, map[string]refusal{
		"order.dlq": {cli.ExitError, "redrive: topic order.dlq does not exist: redrive topics --quick lists those that there are\n"},
		"orders":    {cli.ExitUsage, "redrive: orders is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another); did you mean orders.dlq?\n"},
		// it suggested a topic that did not exist
		"orders.dlq.riskd":  {cli.ExitUsage, "redrive: orders.dlq.riskd is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another)\n"},
		"orders.dlq.ledger": {cli.ExitUsage, "redrive: orders.dlq.ledger is a ledger by its name, so it has no dead letters; did you mean orders.dlq?\n"},
	})
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
	refuses(t, b, map[string]refusal{
		"orders.dlq.ledger": {cli.ExitUsage, "redrive: orders.dlq.ledger is a ledger by its name, so it has no dead letters\n"},
		"orders.dlq.audit":  {cli.ExitError, "redrive: orders.dlq.audit is compacted, as ledgers are: by its name it is a dead-letter topic, which must not be compacted. "},
	}, grouped...)
	for _, flag := range []string{"--all", "--quick"} {
		got := b.Redrive(t, slices.Concat([]string{"topics", flag, "-o", "jsonl"}, grouped)...)
		if got.Code != cli.ExitDone || strings.Count(got.Stdout, "\n") != 1 || !strings.Contains(got.Stdout, `{"topic":"orders.dlq.riskd",`) || !strings.HasPrefix(got.Stderr, "warning: orders.dlq.audit is compacted, ") {
			t.Errorf("topics %s: %+v", flag, got)
		}
	}
}
