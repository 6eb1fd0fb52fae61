package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Every verb that takes a topic says the same of one that is not there, or that is not a
// dead-letter topic, and does nothing.
func TestFindTopic_NamesWhatIsNoDeadLetterTopic(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for verb, more := range map[string][]string{
		"summary": nil, "list": nil, "show": {"0:0"}, "discard": {"--why", "x", "--yes"}, "export": nil, "import": {save(t, "")}, "prune": nil, "plan": nil, "run": nil, "runs": nil,
		"status": nil, "abort": nil, "resume": nil,
	} {
		for topic, want := range map[string]struct {
			code int
			says string
		}{
			"order.dlq": {exitError, "redrive: topic order.dlq does not exist: redrive topics --quick lists those that there are\n"},
			"orders":    {exitUsage, "redrive: orders is not a dead-letter topic by the naming {topic}.dlq (--dlq-name sets another); did you mean orders.dlq?\n"},
		} {
			if verb == "status" || verb == "abort" || verb == "resume" {
				topic += "/20260102-150405-a1b2c3"
			}
			got := b.redrive(t, append([]string{verb, topic}, more...)...)
			if got.code != want.code || got.stdout != "" || !strings.HasPrefix(got.stderr, want.says) {
				t.Errorf("%s %s: %+v, want %+v", verb, topic, got, want)
			}
		}
	}
	for _, verb := range []string{"status", "abort", "resume"} {
		exactly(t, b.redrive(t, verb, "orders.dlq/none"), exitError, "", "redrive: orders.dlq: run none: there is no such run\n", verb)
		if got := b.redrive(t, verb, "none"); got.code != exitUsage || !strings.HasPrefix(got.stderr, `redrive: "none" is not a run such as orders.dlq/20260102-150405-a1b2c3: redrive runs TOPIC lists them`) {
			t.Errorf("%s: %+v", verb, got)
		}
	}
}

func TestFindTopic_RefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := aftermath(t)
	for _, verb := range readers {
		for _, c := range []struct {
			args []string
			code int
			want string
		}{
			{[]string{}, exitUsage, "TOPIC is missing: redrive " + verb[0] + " TOPIC"},
			{[]string{"orders.dlq", "--partition", "2"}, exitUsage, "orders.dlq has no partition 2: it has 2, from 0 on"},
			{[]string{"orders.dlq", "--reason", "bad luck", "--since", "x"}, exitUsage, "  --since: "},
		} {
			got := b.redrive(t, append(append([]string{}, verb...), c.args...)...)
			prints(t, got, c.code, "", c.want, c.args)
		}
	}
}

// A source that the user may not see is not gone, for all that is known.
func TestMissingSources_ASourceThatMayNotBeSeenIsNot(t *testing.T) {
	t.Parallel()
	b := guarded(t, []kfake.ACL{aclOn("audit.dlq", kmsg.ACLOperationRead), aclOn("audit", kmsg.ACLOperationDescribe), aclOn("orders.dlq", kmsg.ACLOperationRead), aclOn("orders.dlq.ledger", kmsg.ACLOperationRead), aclOn("orders.dlq", kmsg.ACLOperationDescribeConfigs)})
	b.topic(t, "audit.dlq", 1, nil) // whose source is gone, and may be seen
	got := b.as("ann").run(t, "topics", "-o", "jsonl")
	if got.code != exitDone || !strings.Contains(got.stdout, `"topic":"orders.dlq","source":"orders","sourceGone":null,`) || !strings.Contains(got.stdout, `"topic":"audit.dlq","source":"audit","sourceGone":true,`) {
		t.Errorf("%+v", got)
	}
	if got := b.as("ann").run(t, "topics", "--all"); strings.Count(got.stdout, "gone") != 1 || !strings.Contains(got.stdout, "its source is gone\n") {
		t.Errorf("%+v", got)
	}
}
