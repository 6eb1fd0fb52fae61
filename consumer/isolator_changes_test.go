package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// storesAtMost makes the broker refuse metadata of more characters, as offset.metadata.max.bytes
// does.
func storesAtMost(k *consumertest.Kafka, most func() int) {
	k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		commit := req.(*kmsg.OffsetCommitRequest)
		resp := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
		tooLarge := false
		for _, t := range commit.Topics {
			rt := kmsg.NewOffsetCommitResponseTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				rp := kmsg.NewOffsetCommitResponseTopicPartition()
				rp.Partition = p.Partition
				if p.Metadata != nil && len(*p.Metadata) > most() {
					tooLarge = true
				}
				rp.ErrorCode = kerr.OffsetMetadataTooLarge.Code
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, tooLarge
	})
}

// The brokers' limit of metadata is lowered after the first death. What kills is found all the
// same.
func TestIsolator_FindsWhatKillsWithLittleMetadata(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]int{"100 characters": 100, "60 characters": 60}, 1, func(t *testing.T, k *consumertest.Kafka, most int) {
		m := newMortal(t, k)
		records := k.Produce(many(60)...)
		var lowered atomic.Bool
		storesAtMost(k, func() int {
			if !lowered.Load() {
				return 4096
			}
			return most
		})
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Offset == 17 {
				lowered.Store(true)
			}
			return r.Offset == 17
		}, busyOnce))
		cfg.Order = consumer.OrderKey
		m.limited(cfg, 6, func() bool { return m.missing(records) == 1 && m.letters() == 1 })
		if m.deaths > 4 || m.letters() != 1 {
			t.Errorf("%d deaths, want 4 at most; %d letters; %s", m.deaths, m.letters(), said(k, "orders", 0))
		}
	})
}

// A process ends in order while a suspect runs alone whose handler ignores the end, and is killed
// then. That charges nothing.
func TestIsolator_EndWhileOneIsAloneChargesNothing(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"alone": "n=2 s=3 g=AAM", "group": "n=2 s=3"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
		m := newMortal(t, k)
		records := k.Produce(many(3)...)
		left(t, k, "orders", 0, c.B)
		var started, again atomic.Bool
		cfg := config(m.handler(func(context.Context, *kgo.Record) bool { return false }, func(context.Context, *kgo.Record) error {
			if started.Store(true); !again.Load() {
				time.Sleep(time.Minute)
			}
			return nil
		}))
		cfg.Order, cfg.DrainTimeout = c.A, time.Second
		for i := range 4 {
			first := k.Run(cfg)
			eventually(t, "one runs", started.Load)
			if i%2 == 1 {
				first.Pause("orders")
				time.Sleep(time.Second)
			}
			stopStuck(t, first)
			m.dead.Store(true)
			time.Sleep(2 * time.Minute)
			m.dead.Store(false)
			started.Store(false)
		}
		again.Store(true)
		k.Run(cfg)
		m.all(t, records)
		if n := m.letters(); n > 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// Partitions are added while a suspect runs alone. Nothing of them runs beside it, and they run
// after it.
func TestIsolator_NewPartitionsWaitWhileOneIsAlone(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		k.Produce(many(2)...)
		left(t, k, "orders", 0, "n=2 s=2 g=AAI")
		var alone, beside atomic.Bool
		var fresh atomic.Int32
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && r.Offset == 0 {
				alone.Store(true)
				time.Sleep(2 * time.Minute)
				alone.Store(false)
				return nil
			}
			if alone.Load() {
				beside.Store(true)
			}
			if r.Partition > 0 {
				fresh.Add(1)
			}
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = order, 10*time.Minute
		k.Run(cfg)
		eventually(t, "it runs alone", alone.Load)
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			_, err := cl.UpdatePartitions(ctx, 3, "orders")
			return err
		})
		produceTo(t, k, 1, "x")
		produceTo(t, k, 2, "x")
		time.Sleep(5 * time.Minute)
		if beside.Load() || fresh.Load() != 2 {
			t.Errorf("beside: %v; %d of 2 records of the new partitions have run", beside.Load(), fresh.Load())
		}
	})
}

// A group is renamed while records are finished above its floor, or condemned there.
func TestIsolator_RenamedGroupKeepsWhatACommitSays(t *testing.T) {
	each(t, map[string]offsets.Metadata{
		"finished":  {Finished: []offsets.Span{{First: 20, Last: 40}}},
		"condemned": {Evidence: offsets.Evidence{Process: 1, Deaths: 2, Suspect: 50, Condemned: []offsets.Alone{{Offset: 30}}}},
	}, 1, func(t *testing.T, k *consumertest.Kafka, said offsets.Metadata) {
		records := k.Produce(many(50)...)
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 5, LeaderEpoch: 0, Metadata: said.Encode(5, 4096)})
			return cl.CommitAllOffsets(ctx, "invoices", at)
		})
		var calls ran
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			calls.count(r)
			return nil
		})
		cfg.FormerGroups = []string{"invoices"}
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		if n := calls.times(records[30]); n > 0 {
			t.Errorf("record 30 ran %d times", n)
		}
		if n := calls.times(records[45]); n != 1 {
			t.Errorf("record 45 ran %d times", n)
		}
	})
}

// CrashLimit is changed after each death. What kills is found, and nothing else.
func TestIsolator_FindsWhatKillsWhileTheLimitChanges(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		records := k.Produce(many(40)...)
		over := func() bool { return m.missing(records) == 1 && m.letters() == 1 }
		for _, limit := range []int{5, 2, 10, 2, 3, 2, 2, 2, 2} {
			cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool { return r.Offset == 17 }, busyOnce))
			cfg.Order, cfg.Policy.CrashLimit = order, limit
			if m.limited(cfg, m.deaths, over) {
				break
			}
		}
		if !over() || m.deaths > 5 {
			t.Errorf("%d deaths, %d letters, %d missing", m.deaths, m.letters(), m.missing(records))
		}
		k.DeadLettered(records[17], headers.ReasonCrashLoop)
	})
}

// A tier leaves the configuration between the deaths that a retry in it causes. The retry is found.
func TestIsolator_FindsARetryThatKillsInATierThatLeft(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]int{"after 1 death": 1, "after 3 deaths": 3}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, int]) {
		m := newMortal(t, k)
		records := k.Produce(many(30)...)
		cfg := config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Offset == 7 && consumer.DeliveryOf(ctx, r).Attempt == 2
		}, busyOnce))
		cfg.Order = c.A
		cfg.Policy.Tiers = []time.Duration{time.Second, time.Minute}
		over := func() bool { return m.missing(records) == 1 && m.letters() == 1 }
		for m.deaths < 6 && !over() {
			if m.deaths >= c.B {
				cfg.Policy.Tiers = []time.Duration{time.Minute}
			}
			m.limited(cfg, m.deaths, over)
		}
		if m.deaths > 4 || m.letters() != 1 {
			t.Errorf("%d deaths, %d letters, %d missing", m.deaths, m.letters(), m.missing(records))
		}
		k.DeadLettered(records[7], headers.ReasonCrashLoop)
	})
}

// A condemned record waits for the DLQ while processes end in order and begin again. It runs in
// none of them, and no other is charged.
func TestIsolator_CondemnedOutlivesRestarts(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		records := k.Produce(many(10)...)
		left(t, k, "orders", 0, "n=2 s=10 c=3")
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.NotEnoughReplicas})
		var calls ran
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			calls.count(r)
			return nil
		})
		cfg.Order, cfg.DrainTimeout = order, time.Second
		for range 3 {
			c := k.Run(cfg)
			time.Sleep(15 * time.Second)
			stop(t, c)
		}
		fault.Remove()
		k.Run(cfg)
		k.DeadLettered(records[3], headers.ReasonCrashLoop)
		time.Sleep(10 * time.Second)
		for _, r := range records {
			if n := calls.times(r); r != records[3] && n != 1 || r == records[3] && n != 0 {
				t.Errorf("record %d ran %d times", r.Offset, n)
			}
		}
		if n := len(content(t, k, "orders.dlq")); n != 1 {
			t.Errorf("%d dead letters", n)
		}
	})
}
