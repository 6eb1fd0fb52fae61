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
