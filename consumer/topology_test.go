package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// Trap 15: a retry topic has fewer partitions than its source, or the source grows. The new partitions' lanes wait until their siblings
// have grown too, and begin within ten seconds: kgo, which looks every five minutes how many there are, is told.
//
// Trap 35: the source grows, and a member that did not grow the siblings itself cannot write to the new partitions. Which member grew
// them is chance, so each of three gets new partitions, and each copies a record of them.
func TestTopology_NewPartitionsOfASourceBeginWithinTenSeconds(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string][]kgo.Opt{"classic": nil, "KIP-848": {kgo.ServerSideBalancer()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				k.CreateTopic("orders.retry.900ms", 1) // somebody's who knew no better
				var log lines
				cfg := config(sortOfBad)
				cfg.Logger, cfg.Kafka = log.logger(), slices.Concat(protocol, []kgo.Opt{kgo.FetchMaxWait(250 * time.Millisecond)}) // as a Consumer has it
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
				produceFailing(t, k, 3, 9)
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
				if n := log.with("a copy was refused"); n > 0 {
					t.Errorf("%d copies were refused on partitions that are there", n)
				}
			})
		})
	}
}

// produceFailing writes two records that fail to each of some partitions which the client of the kit has not heard of yet.
func produceFailing(t *testing.T, k *consumertest.Kafka, from, to int32) {
	t.Helper()
	cl, err := kgo.NewClient(append(k.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for p := from; p < to; p++ {
		for _, value := range []string{"bad", "busy"} {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: p, Value: []byte(value)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestARetryTopicWithFewerPartitionsThatMayNotGrowIsRefused(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		cfg := config(fine)
		provision(t, k, cfg)
		k.DeleteTopic("orders.retry.300ms")
		k.CreateTopic("orders.retry.300ms", 2)
		cfg.Provision.Mode = retrytopics.Verify
		err := k.Begin(cfg).Wait()
		var undone *retrytopics.UndoneError
		if !errors.As(err, &undone) || !slices.Equal(undone.Topics, []string{"orders.retry.300ms"}) {
			t.Errorf("Run returned %v, want that the topic is too small", err)
		}
	})
}

// Trap 25: retention deletes a record that waits: its copy has an old timestamp, or the tier is longer than its topic's retention. A copy
// has a timestamp of its own, and what is too short is refused.
func TestRetentionDoesNotTakeWhatWaits(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const tier = 4 * time.Hour
		k.CreateTopic("orders", 1)
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
		for _, r := range records {
			k.Handled(r, 1)
		}
		if start := k.Cluster.PartitionInfos("orders.retry.4h")[0].LogStartOffset; start != 0 {
			t.Errorf("retention took %d copies", start)
		}
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}

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

// Trap 28: the group's offsets on the retry topics expire, since no member subscribes to them (KIP-211). They are committed again each day,
// those of a tier that is only drained too.
func TestOffsetsOfIdleRetryTopicsDoNotExpire(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		alterBroker(t, k, "offsets.retention.minutes", "1500") // 25 hours
		k.CreateTopic("orders", 2)
		cfg := config(busyOnce)
		cfg.Kafka = []kgo.Opt{kgo.FetchMaxWait(time.Hour), kgo.HeartbeatInterval(20 * time.Second)} // see quietly
		cfg.CommitInterval = time.Minute
		drained := cfg
		drained.Policy.Tiers = []time.Duration{time.Second, 3 * time.Second}
		first := k.Run(drained)
		for _, r := range k.Produce(many(20)...) {
			k.Handled(r, 1)
		}
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		c := k.Run(cfg)
		want := map[string]int64{}
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				want[fmt.Sprint(o.Topic, "/", l.Partition)] = o.Next
			}
		}
		if len(want) != 10 {
			t.Fatalf("the lanes have the partitions %v, want those of the source, two tiers and two drained ones", want)
		}
		time.Sleep(26 * time.Hour)
		commits := k.Cluster.GroupInfo("billing").Commits
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				at, ok := commits[o.Topic][l.Partition]
				if name := fmt.Sprint(o.Topic, "/", l.Partition); !ok || at.Offset != want[name] {
					t.Errorf("%s: %d is committed (%v) after 26 idle hours, want %d", name, at.Offset, ok, want[name])
				}
			}
		}
	})
}

// A group whose offsets are gone begins anew: the source by Start, the retry topics at their start, whatever Start says.
func TestAGroupThatWasForgottenLosesNothingThatIsParked(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]consumer.Start{"earliest": consumer.StartEarliest(), "latest": consumer.StartLatest()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 2)
				cfg := config(busyOnce)
				cfg.Start, cfg.Policy.Tiers = start, []time.Duration{time.Minute}
				alterBroker(t, k, "offsets.retention.minutes", "60")
				c := k.Run(cfg)
				parked := k.Produce(many(20)...)
				for _, r := range parked {
					k.Parked(r, time.Minute, "")
				}
				k.Conserved()
				if err := c.Stop(); err != nil {
					t.Fatal(err)
				}
				away := k.Produce(many(20)...)
				time.Sleep(2 * time.Hour)
				if info := k.Cluster.GroupInfo("billing"); info != nil && len(info.Commits) > 0 {
					t.Fatalf("the broker has kept %v", info.Commits)
				}
				var done ran
				cfg.Handler = done.after(fine)
				k.Run(cfg)
				done.all(t, parked)
				if name == "earliest" {
					done.all(t, away)
					k.Conserved()
				}
			})
		})
	}
}

// quietly makes rare what a consumer asks by itself: a virtual hour takes as long as it has requests.
func quietly(cfg *consumer.Config) {
	cfg.Kafka = append(cfg.Kafka, kgo.FetchMaxWait(time.Minute), kgo.HeartbeatInterval(10*time.Second))
	cfg.CommitInterval = time.Second
}

// alterBroker sets a config of the brokers.
func alterBroker(t *testing.T, k *consumertest.Kafka, name, value string) {
	t.Helper()
	cl, err := kgo.NewClient(k.Opts()...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).AlterBrokerConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}})
	if err == nil && len(resp) > 0 {
		err = resp[0].Err
	}
	if err != nil {
		t.Fatal(err)
	}
}

// alter sets a config of a topic.
func alter(t *testing.T, k *consumertest.Kafka, topic, name, value string) {
	t.Helper()
	cl, err := kgo.NewClient(k.Opts()...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	resp, err := kadm.NewClient(cl).AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	if err == nil {
		_, err = resp.On(topic, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A pause in kgo is a set of names and outlives the assignment: a lane that was full when it was given up must read again when
// it comes back.
func TestAPauseDoesNotOutliveItsLane(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		block := make(chan struct{})
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			select {
			case <-block:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		cfg.MaxInFlight, cfg.DrainTimeout = 10, 100*time.Millisecond
		first := k.Run(cfg)
		records := k.Produce(many(300)...)
		second := k.Run(cfg)
		for len(second.Health().Lanes) != 1 || len(first.Health().Lanes) != 1 {
			time.Sleep(100 * time.Millisecond)
		}
		if err := second.Stop(); err != nil {
			t.Fatal(err)
		}
		for len(first.Health().Lanes) != 2 {
			time.Sleep(100 * time.Millisecond)
		}
		close(block)
		for _, r := range records {
			k.Handled(r, 1)
		}
		k.Conserved()
	})
}
