package retrytopics_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

func ExampleNaming_Siblings() {
	s, err := retrytopics.Naming{}.Siblings("orders", "billing", retrytopics.Default...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, topic := range s.Topics() {
		fmt.Println(topic)
	}
	// Output:
	// orders.retry.5s
	// orders.retry.30s
	// orders.retry.5m
	// orders.dlq
	// orders.dlq.ledger
}

// If several groups consume a topic, their names separate the siblings.
func ExampleNaming_group() {
	naming := retrytopics.Naming{
		Retry:  "{topic}.retry.{group}.{delay}",
		DLQ:    "{topic}.dlq.{group}",
		Ledger: "{topic}.dlq.{group}.ledger",
	}
	s, err := naming.Siblings("orders", "billing", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Topics())
	fmt.Println(naming.SourceOf("orders.dlq.shipping"))
	// Output:
	// [orders.retry.billing.1m orders.dlq.billing orders.dlq.billing.ledger]
	// orders true
}

// A dead-letter topic that exists, with the name that Spring for Apache Kafka gave it.
func ExampleNaming_existing() {
	naming := retrytopics.Naming{
		DLQ:    "{topic}-dlt",
		Ledger: "{topic}-dlt-ledger",
		Retry:  "{topic}-siding-{delay}", // names that no topic has yet
	}
	s, err := naming.Siblings("orders", "billing", time.Minute)
	fmt.Println(s.Topics(), err)
	// Output:
	// [orders-siding-1m orders-dlt orders-dlt-ledger] <nil>
}

func ExampleEnsure() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	adm, err := kadm.NewOptClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer adm.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	orders, err := retrytopics.Naming{}.Siblings("orders", "billing", time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := retrytopics.Ensure(ctx, adm, retrytopics.Spec{}, orders)
	fmt.Println(report, err)
	report, err = retrytopics.Ensure(ctx, adm, retrytopics.Spec{Mode: retrytopics.Verify}, orders)
	fmt.Println(report, err)
	// Output:
	// created orders.retry.1m with 3 partitions
	// created orders.dlq with 3 partitions
	// created orders.dlq.ledger with 3 partitions <nil>
	// siblings are as wanted <nil>
}
