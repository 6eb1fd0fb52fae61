package look_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// An outage holds records back before there is a letter, or after the last one: it has to look as
// though something is wrong.
func TestTopics_ShowWhatAGuardHolds(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	b.Produce(t, &kgo.Record{Topic: "orders", Partition: 1}, &kgo.Record{Topic: "orders", Partition: 1})
	at := kadm.Offsets{}
	field := commitmark.Guard{State: commitmark.Held, Since: clitest.Noon.Add(-12 * time.Minute), Class: "billing.down"}.Field()
	at.Add(kadm.Offset{Topic: "orders", Partition: 1, LeaderEpoch: -1, Metadata: commitmark.Mark + " 1" + field})
	if err := b.Admin.CommitAllOffsets(t.Context(), "billing", at); err != nil {
		t.Fatal(err)
	}
	const want = "held for 12m by billing (1 of 3 partitions), 2 records wait; most failures are billing.down"
	for _, verb := range [][]string{{"topics"}, {"topics", "--quick"}, {"summary", "orders.dlq"}} {
		if got := b.Redrive(t, verb...); got.Code != cli.ExitDone || strings.Count(got.Stdout, want) != 1 {
			t.Errorf("%v: %+v", verb, got)
		}
	}
	for _, verb := range [][]string{{"topics", "-o", "jsonl"}, {"summary", "orders.dlq", "-o", "jsonl"}} {
		if got := b.Redrive(t, verb...); !strings.Contains(got.Stdout, `"guards":[{"group":"billing","state":"held","since":"`) || !strings.Contains(got.Stdout, `"class":"billing.down","partitions":1,"of":3,"waiting":2}]`) {
			t.Errorf("%v: %+v", verb, got)
		}
	}
}

// A partition that lacks a permission and a service that is gone are as loud as an outage, also of
// a topic that has no letters.
func TestTopics_ShowWhatIsBlockedOrGone(t *testing.T) {
	t.Parallel()
	b := roottest.SomeTopics(t)
	b.Topic(t, "refunds", 2, nil)
	b.Topic(t, "refunds.dlq", 2, nil)
	b.Produce(t, &kgo.Record{Topic: "refunds", Partition: 1}, &kgo.Record{Topic: "refunds", Partition: 1})
	commits(t, b.Admin, "gone", "refunds", 1, 0, "")
	commits(t, b.Admin, "gone", "refunds", 0, 0, "")
	for _, verb := range [][]string{{"topics"}, {"summary", "refunds.dlq"}} {
		if got := b.Redrive(t, verb...); !strings.Contains(got.Stdout, "gone: no members, 2 records wait") {
			t.Errorf("%v: %+v", verb, got)
		}
	}
	commits(t, b.Admin, "gone", "refunds", 1, 1, commitmark.Lane{State: commitmark.Denied, Since: clitest.Noon.Add(-time.Hour)}.Field())
	for _, verb := range [][]string{{"topics"}, {"summary", "refunds.dlq"}} {
		if got := b.Redrive(t, verb...); !strings.Contains(got.Stdout, "gone: partition 1: blocked: it lacks the permission to write to a topic, for 1h, 1 record waits") {
			t.Errorf("%v: %+v", verb, got)
		}
	}
	roottest.Prints(t, b.Redrive(t, "topics", "-o", "jsonl"), cli.ExitDone, `"consumers":[{"group":"gone","state":"no members","members":0,"lag":1}]`, "")
}
