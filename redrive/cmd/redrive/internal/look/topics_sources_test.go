package look_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// A source that the user may not see is not gone, for all that is known.
func TestMissingSources_ASourceThatMayNotBeSeenIsNot(t *testing.T) {
	t.Parallel()
	b := roottest.Guarded(t, []kfake.ACL{roottest.ACLOn("audit.dlq", kmsg.ACLOperationRead), roottest.ACLOn("audit", kmsg.ACLOperationDescribe), roottest.ACLOn("orders.dlq", kmsg.ACLOperationRead), roottest.ACLOn("orders.dlq.ledger", kmsg.ACLOperationRead), roottest.ACLOn("orders.dlq", kmsg.ACLOperationDescribeConfigs)})
	b.Topic(t, "audit.dlq", 1, nil) // whose source is gone, and may be seen
	got := b.As("ann").Run(t, "topics", "-o", "jsonl")
	if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, `"topic":"orders.dlq","source":"orders","sourceGone":null,`) || !strings.Contains(got.Stdout, `"topic":"audit.dlq","source":"audit","sourceGone":true,`) {
		t.Errorf("%+v", got)
	}
	if got := b.As("ann").Run(t, "topics", "--all"); strings.Count(got.Stdout, "gone") != 1 || !strings.Contains(got.Stdout, "its source is gone\n") {
		t.Errorf("%+v", got)
	}
}
