package consumer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/retrytopics"
)

// Trap 15: a retry topic has fewer partitions than its source, or the source grows. The new
// partitions' lanes wait until their siblings have grown too, and begin within ten seconds. kgo
// alone polls the number of partitions every five minutes; siding makes it poll at once.
//
// Trap 35: the source grows, and a member that did not grow the siblings itself cannot write to the
// new partitions. Which member grew them is chance, so each of three gets new partitions, and each
// copies a record of them.
func TestConsumerTopics_NewPartitionsBeginInTenSeconds(t *testing.T) {
	each(t, protocols, 3, func(t *testing.T, k *consumertest.Kafka, protocol []kgo.Opt) {
		k.CreateTopic("orders.retry.900ms", 1) // with too few partitions
		cfg := config(sortOfBad)
		// as a Consumer has it, and a broker
		cfg.Kafka = slices.Concat(protocol, []kgo.Opt{kgo.FetchMaxWait(250 * time.Millisecond), kgo.HeartbeatInterval(3 * time.Second)})
		alterBroker(t, k, "group.consumer.heartbeat.interval.ms", "5000")
		log := logged(&cfg)
		var members []*consumertest.Consumer
		for range 3 {
			members = append(members, k.Run(cfg))
		}
		balanced := func(each int) func() bool {
			return func() bool {
				return !slices.ContainsFunc(members, func(c *consumertest.Consumer) bool { return len(c.Health().Lanes) != each })
			}
		}
		eventually(t, "each member has a lane", balanced(1))
		for p := range 3 {
			for _, value := range []string{"bad", "busy"} {
				k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(p, 3), Value: []byte(value)})
			}
		}
		k.Conserved() // the producers know the siblings
		growTopic(t, k, "orders", 9)
		grown := time.Now()
		for p := int32(3); p < 9; p++ {
			produceTo(t, k, p, "bad")
			produceTo(t, k, p, "busy")
		}
		for begun := false; !begun; {
			time.Sleep(50 * time.Millisecond)
			begun = true
			for p := int32(3); p < 9; p++ {
				begun = begun && k.Cluster.GroupInfo("billing").Commits["orders"][p].Offset == 2
			}
			for _, c := range members {
				for _, l := range blocked(c) {
					t.Errorf("lane %d is %s: %s", l.Partition, l.State, l.Why)
				}
			}
			if took := time.Since(grown); took > 10*time.Second {
				t.Fatalf("the new partitions have committed %v after %v, want 2 each", k.Cluster.GroupInfo("billing").Commits["orders"], took)
			}
		}
		eventually(t, "each member has three lanes", balanced(3))
		for p, info := range k.Cluster.PartitionInfos("orders.dlq") {
			if info.HighWatermark != 1 {
				t.Errorf("%d dead letters of partition %d, want 1", info.HighWatermark, p)
			}
		}
		for _, sibling := range []string{"orders.retry.300ms", "orders.retry.900ms", "orders.dlq"} {
			if got := len(k.Cluster.PartitionInfos(sibling)); got != 9 {
				t.Errorf("%s has %d partitions, want 9", sibling, got)
			}
		}
		log.has(t, 0, "a copy was refused")
	})
}

// Trap 25: retention deletes a record that waits: its copy has an old timestamp, or the tier is
// longer than its topic's retention. A copy has a timestamp of its own, and what is too short is
// refused.
func TestConsumer_RetentionKeepsWhatWaits(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const tier = 4 * time.Hour
		cfg := config(busyOnce)
		quietly(&cfg)
		cfg.Policy.Tiers = []time.Duration{tier}
		written := time.Now().Add(-300 * 24 * time.Hour)
		c := k.Run(cfg)
		records := many(10)
		for _, r := range records {
			r.Timestamp = written
		}
		k.Produce(records...)
		for _, r := range records {
			if m := k.Parked(r, tier, ""); !m.Original.Timestamp.Equal(written) {
				t.Errorf("the copy says that the record is of %v, want %v", m.Original.Timestamp, written)
			}
		}
		for range 2 {
			k.Cluster.ApplyRetention()
			time.Sleep(tier / 2)
		}
		time.Sleep(tier / 2)
		handledOnce(k, records)
		if start := k.Cluster.PartitionInfos("orders.retry.4h")[0].LogStartOffset; start != 0 {
			t.Errorf("retention took %d copies", start)
		}
		stop(t, c)

		cfg.Provision.TierRetention = 6 * time.Hour
		cfg.Kafka = k.Opts()
		if _, err := consumer.New(cfg); err == nil || !strings.Contains(err.Error(), "before they are due") {
			t.Errorf("New says %v to a retention of 6 hours for a delay of 4, want a refusal", err)
		}
		cfg.Provision.TierRetention, cfg.Kafka = 0, nil
		alter(t, k, "orders.retry.4h", "retention.ms", "7200000")
		if err := k.Begin(cfg).Wait(); err == nil || !strings.Contains(err.Error(), "before they are due") {
			t.Errorf("Run returned %v with a topic that keeps a record for two hours and a delay of 4, want a refusal", err)
		}
	})
}

// A dead-letter topic that keeps letters too short was a line at INFO that said "siblings
// provisioned", with numbers of milliseconds, and nothing had been provisioned.
func TestProvisioner_WarnsOfWeakerSiblings(t *testing.T) {
	each(t, map[string]retrytopics.Mode{"verify": retrytopics.Verify, "create": retrytopics.Create}, 1, func(t *testing.T, k *consumertest.Kafka, mode retrytopics.Mode) {
		cfg := config(fine)
		first := logged(&cfg)
		stop(t, k.Run(cfg))
		first.has(t, 1, `level=INFO msg="siding: siblings provisioned"`, "created orders.dlq")
		first.has(t, 0, "level=WARN")
		cfg.Provision = retrytopics.Spec{Mode: mode, DLQRetention: 90 * 24 * time.Hour}
		log := logged(&cfg)
		stop(t, k.Run(cfg))
		log.has(t, 0, "siblings provisioned")
		log.has(t, 1, `level=WARN msg="siding: a sibling is weaker than Config.Provision wants`, "topic=orders.dlq ", "retention.ms=1209600000 (",
			"kafka-configs.sh", "--alter --topic orders.dlq --add-config retention.ms=7776000000")
	})
}
