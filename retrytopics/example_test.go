package retrytopics_test

import (
	"context"
	"errors"
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

// If a dead-letter topic were consumed like a source, its failures would be written back to it.
func ExampleCheck() {
	var all []retrytopics.Siblings
	for _, source := range []string{"orders", "orders.dlq"} {
		s, err := retrytopics.Naming{}.Siblings(source, "billing")
		if err != nil {
			fmt.Println(err)
			return
		}
		all = append(all, s)
	}
	fmt.Println(retrytopics.Check(all...))
	// Output: topic "orders.dlq", a sibling of "orders", is a source itself ("orders.dlq"): consume the source only, its siblings follow
}

func ExampleFormatDelay() {
	fmt.Println(retrytopics.FormatDelay(90*time.Minute), retrytopics.FormatDelay(1500*time.Millisecond))
	// Output: 1h30m 1.5s
}

// Only the form that FormatDelay writes is a delay, so each name has one reading.
func ExampleParseDelay() {
	for _, s := range []string{"1h30m", "90m", "orders"} {
		d, ok := retrytopics.ParseDelay(s)
		fmt.Println(s, d, ok)
	}
	// Output:
	// 1h30m 1h30m0s true
	// 90m 0s false
	// orders 0s false
}

// The schedules, with the names that their tiers get.
func Example_schedules() {
	for _, schedule := range [][]time.Duration{
		retrytopics.Default, retrytopics.Aggressive, retrytopics.Standard, retrytopics.Patient, retrytopics.Cautious,
	} {
		s, err := retrytopics.Naming{}.Siblings("orders", "billing", schedule...)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Tiers)
	}
	// Output:
	// [{5s orders.retry.5s} {30s orders.retry.30s} {5m0s orders.retry.5m}]
	// [{10s orders.retry.10s} {1m0s orders.retry.1m} {5m0s orders.retry.5m}]
	// [{1m0s orders.retry.1m} {30m0s orders.retry.30m} {3h0m0s orders.retry.3h}]
	// [{5m0s orders.retry.5m} {1h0m0s orders.retry.1h} {6h0m0s orders.retry.6h}]
	// [{1m0s orders.retry.1m} {10m0s orders.retry.10m} {1h0m0s orders.retry.1h} {4h0m0s orders.retry.4h} {12h0m0s orders.retry.12h}]
}

// A tool that sees only a cluster finds the source of each sibling.
func ExampleNaming_SourceOf() {
	var naming retrytopics.Naming
	for _, topic := range []string{"orders.retry.30s", "orders.dlq", "orders.dlq.ledger", "orders"} {
		fmt.Println(naming.SourceOf(topic))
	}
	// Output:
	// orders true
	// orders true
	// orders true
	//  false
}

func ExampleNaming_TierOf() {
	fmt.Println(retrytopics.Naming{}.TierOf("orders.retry.30s", "orders", "billing"))
	fmt.Println(retrytopics.Naming{}.TierOf("orders.dlq", "orders", "billing"))
	// Output:
	// 30s true
	// 0s false
}

// The tiers that a former configuration left behind are found among all topics of the cluster.
func ExampleNaming_TiersAmong() {
	topics := []string{"orders", "orders.dlq", "orders.retry.1m", "orders.retry.5s", "payments.retry.5s"}
	for _, tier := range (retrytopics.Naming{}).TiersAmong(topics, "orders", "billing") {
		fmt.Println(tier.Delay, tier.Topic)
	}
	// Output:
	// 5s orders.retry.5s
	// 1m0s orders.retry.1m
}

// Names must be readable backwards.
func ExampleNaming_Validate() {
	naming := retrytopics.Naming{Retry: "retry.{delay}", DLQ: "{topic}{group}.dlq"}
	fmt.Println(naming.Validate())
	// Output:
	// naming Retry "retry.{delay}": {topic} must occur once
	// naming DLQ "{topic}{group}.dlq": {topic} and {group} need text between them, or a name cannot be read backwards
}

func ExampleSiblings_Topics() {
	s, _ := retrytopics.Naming{}.Siblings("orders", "billing", time.Minute)
	fmt.Println(s.Topics())
	// Output: [orders.retry.1m orders.dlq orders.dlq.ledger]
}

// Doubling reaches the longest delay with the seventh tier. A policy that asks for more attempts
// than that repeats it.
func ExampleExponential() {
	webhooks, err := retrytopics.Naming{}.Siblings("webhooks", "partners", retrytopics.Exponential(time.Minute, time.Hour, 12)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tier := range webhooks.Tiers {
		fmt.Println(tier.Topic)
	}
	// Output:
	// webhooks.retry.1m
	// webhooks.retry.2m
	// webhooks.retry.4m
	// webhooks.retry.8m
	// webhooks.retry.16m
	// webhooks.retry.32m
	// webhooks.retry.1h
}

// If a service may not create topics, an operator with the permission runs the commands.
func ExampleProvisionError() {
	adm, stop := cluster("orders")
	defer stop()
	orders, err := retrytopics.Naming{}.Siblings("orders", "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = retrytopics.Ensure(context.Background(), adm, retrytopics.Spec{Mode: retrytopics.Verify}, orders)
	if refused, ok := errors.AsType[*retrytopics.ProvisionError](err); ok {
		fmt.Println(refused.Topics)
		fmt.Println(refused.Commands[0])
	}
	// Output:
	// [orders.dlq orders.dlq.ledger]
	// kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --create --topic orders.dlq --partitions 3 --replication-factor 1 --config cleanup.policy=delete --config max.message.bytes=1114124 --config message.timestamp.type=LogAppendTime --config min.insync.replicas=1 --config retention.bytes=-1 --config retention.ms=1209600000 --config segment.ms=86400000 --config unclean.leader.election.enable=false
}

// Ensure never changes the configs of an existing sibling. It reports weaker ones, each with a
// command.
func ExampleDifference_Command() {
	adm, stop := cluster("orders")
	defer stop()
	ctx := context.Background()
	twoDays := map[string]*string{"retention.ms": kadm.StringPtr("172800000")}
	if _, err := adm.CreateTopic(ctx, 3, 1, twoDays, "orders.dlq"); err != nil {
		fmt.Println(err)
		return
	}
	orders, err := retrytopics.Naming{}.Siblings("orders", "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := retrytopics.Ensure(ctx, adm, retrytopics.Spec{}, orders)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range report.Differences {
		if d.Setting == "retention.ms" {
			fmt.Println(d)
			fmt.Println(d.Command())
		}
	}
	// Output:
	// orders.dlq has retention.ms=172800000 (48h), wanted is 1209600000 (336h)
	// kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --topic orders.dlq --add-config retention.ms=1209600000
}

func ExampleSpec_RetentionOf() {
	var spec retrytopics.Spec
	fmt.Println(spec.RetentionOf(time.Minute), spec.RetentionOf(7*24*time.Hour))
	// Output: 168h0m0s 336h0m0s
}

// Errors of a specification are reported before any request to a cluster.
func ExampleSpec_Validate() {
	orders, _ := retrytopics.Naming{}.Siblings("orders", "billing", 12*time.Hour)
	spec := retrytopics.Spec{TierRetention: 13 * time.Hour, Configs: map[string]*string{"cleanup.policy": new("compact")}}
	fmt.Println(spec.Validate(orders))
	// Output:
	// spec: TierRetention 13h0m0s is too short for "orders.retry.12h": records would expire before they are due, it needs 24h0m0s at least
	// spec: Configs cannot set cleanup.policy: compaction deletes records that share a key
}

// cluster starts a broker in this process, with topics of three partitions.
func cluster(topics ...string) (adm *kadm.Client, stop func()) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	if err != nil {
		panic(err)
	}
	adm, err = kadm.NewOptClient(kgo.SeedBrokers(broker.ListenAddrs()...))
	if err != nil {
		panic(err)
	}
	return adm, func() {
		adm.Close()
		broker.Close()
	}
}
