package redrive_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

func TestTopics_ListsDeadLetterTopics(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 7, nil)
		k.CreateTopic("bills.dlq", 3) // its source and its ledger are gone
		k.CreateTopic("other", 1)
		topics, err := kadm.NewClient(clientOf(t, k)).ListTopics(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bills, orders, ledger := topics["bills.dlq"].ID, topics["orders.dlq"].ID, topics["orders.dlq.ledger"].ID
		if bills == orders || orders == ledger {
			t.Fatalf("the ids are %v, %v and %v", bills, orders, ledger)
		}
		want := []redrive.DeadLetterTopic{
			{Topic: "bills.dlq", TopicID: bills, Source: "bills", Ledger: "bills.dlq.ledger", Partitions: 3},
			{Topic: "orders.dlq", TopicID: orders, Source: "orders", Ledger: "orders.dlq.ledger", LedgerID: ledger, SourceSeen: true, LedgerSeen: true, Partitions: 1, Records: 7},
		}
		r := redriver(t, k)
		if got, err := r.Topics(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "bills.dlq", Partitions: []int32{1}, Err: kerr.LeaderNotAvailable, Count: -1})
		want[0].Records = -1
		if got, err := r.Topics(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	})
}

func TestTopics_NamesGroups(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		naming := retrytopics.Naming{DLQ: "{topic}.{group}.dlq", Retry: "{topic}.{group}.retry.{delay}"}
		k.CreateTopic("orders", 1)
		k.CreateTopic("orders.billing.dlq", 1)
		got, err := redriverOf(t, redrive.Config{Kafka: k.Opts(), Naming: naming}).Topics(t.Context())
		if err != nil || len(got) != 1 || got[0].Topic != "orders.billing.dlq" || got[0].Group != "billing" {
			t.Errorf("%+v, %v", got, err)
		}
		none, err := redriverOf(t, redrive.Config{Kafka: k.Opts(), Naming: retrytopics.Naming{DLQ: "{topic}.dead"}}).Topics(t.Context())
		if err != nil || len(none) != 0 {
			t.Errorf("%+v, %v", none, err)
		}
	})
}
