package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

const stuckTimeout = 10 * time.Second

// slow handles a record in three seconds.
func slow(ctx context.Context, _ *kgo.Record) error { return takes(ctx, 3*time.Second) }

// limited is until that gives up after some deaths, and reports so.
func (m *mortal) limited(cfg consumer.Config, most int, over func() bool) bool {
	m.t.Helper()
	for !over() {
		c := m.run(cfg)
		for end := time.Now().Add(20 * time.Minute); !m.dead.Load() && !over() && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		}
		died := m.dead.Load()
		if died {
			m.deaths++
			m.t.Logf("death %d: %s", m.deaths, said(m.k, "orders", 0))
		}
		m.dead.Store(true)
		stopStuck(m.t, c)
		time.Sleep(2 * time.Minute)
		m.dead.Store(false)
		if !died || m.deaths > most {
			return over()
		}
	}
	return true
}

// A record that hangs past its timeout and kills then (it allocates in a loop) ends as a dead
// letter.
func TestIsolator_FindsWhatKillsAfterItsTimeout(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		records := k.Produce(onPartition(0, "fine", 10)...)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && r.Offset == 3 {
				time.Sleep(stuckTimeout + 5*time.Second)
				return true
			}
			return false
		}, fine))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		if !m.limited(cfg, 10, func() bool { return m.letters() == 1 }) {
			t.Fatalf("no dead letter after %d deaths; %d of the others have not run", m.deaths, m.missing(append(records[:3:3], records[4:]...)))
		}
		k.DeadLettered(records[3], headers.ReasonCrashLoop)
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
	})
}

// The same, while innocent suspects of another partition wait to run alone.
func TestIsolator_ChargesNoneBesideAStuckOne(t *testing.T) {
	each(t, cases.Cross(orders, map[string]int32{"killer first": 0, "killer last": 1}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, int32]) {
		m := newMortal(t, k)
		p, q := c.B, 1-c.B
		k.Produce(onPartition(int(p), "x", 1)...)
		k.Produce(onPartition(int(q), "x", 40)...)
		left(t, k, "orders", p, "n=2 s=1 g=AAE")
		left(t, k, "orders", q, "n=2 s=40 g=ACg")
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == p {
				time.Sleep(stuckTimeout + 5*time.Second)
				return true
			}
			return false
		}, slow))
		cfg.Order, cfg.Policy.HandlerTimeout = c.A, stuckTimeout
		ok := m.limited(cfg, 8, func() bool { return m.letters() == 1 && k.Cluster.PartitionInfo("orders.dlq", p).HighWatermark == 1 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			if meta.Original.Partition != p {
				t.Errorf("the innocent %d/%d is dead-lettered: %s, %s", meta.Original.Partition, meta.Original.Offset, meta.Reason, meta.Class)
			}
		}
		if !ok {
			t.Errorf("the killer is no dead letter after %d deaths", m.deaths)
		}
	})
}

// A unit of several suspects, of which the first returns after the isolator has released it. The
// second kills.
func TestIsolator_FindsWhatKillsBehindAStuckOne(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "fine", 10)...)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && r.Offset == 0 {
				time.Sleep(stuckTimeout + 5*time.Second)
			}
			return r.Partition == 0 && r.Offset == 1
		}, fine))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		if !m.limited(cfg, 10, func() bool { return m.letters() == 1 }) {
			t.Fatalf("no dead letter after %d deaths", m.deaths)
		}
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
	})
}

// A unit whose first record returned late runs on beside a record that runs alone.
func TestIsolator_LateUnitEndsBeforeOneRunsAlone(t *testing.T) {
	each(t, map[string]string{"first": "n=2 s=10"}, 2, func(t *testing.T, k *consumertest.Kafka, said string) {
		k.Produce(onPartition(0, "fine", 10)...)
		k.Produce(onPartition(1, "fine", 10)...)
		left(t, k, "orders", 0, "n=2 s=10")
		left(t, k, "orders", 1, "n=2 s=10 g=AAo")
		var done ran
		var alone atomic.Int32
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 1 {
				alone.Add(1)
				time.Sleep(3 * time.Second)
				alone.Add(-1)
				return nil
			}
			if alone.Load() > 0 {
				t.Errorf("0/%d starts beside one that runs alone", r.Offset)
			}
			if r.Offset == 0 {
				time.Sleep(stuckTimeout + 5*time.Second)
			}
			return nil
		}))
		cfg.Policy.HandlerTimeout = stuckTimeout
		k.Run(cfg)
		time.Sleep(3 * time.Minute)
	})
}

// The repetition in place kills.
func TestIsolator_FindsARepetitionInPlaceThatKills(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "fine", 10)...)
		var calls atomic.Int32
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			return r.Partition == 0 && r.Offset == 1 && calls.Add(1)%2 == 0
		}, func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && r.Offset == 1 {
				time.Sleep(stuckTimeout + 5*time.Second)
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1}
		if !m.limited(cfg, 10, func() bool { return m.letters() == 1 }) {
			t.Fatalf("no dead letter after %d deaths", m.deaths)
		}
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
	})
}

// A unit of several suspects in a group: the first ignores its timeout and returns late, the second
// kills.
func TestIsolator_FindsTheSecondOfAUnit(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		k.Produce(many(640)...)
		left(t, k, "orders", 0, "n=2 s=640")
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Offset == 0 {
				time.Sleep(stuckTimeout + 5*time.Second)
			}
			return r.Offset == 1
		}, fine))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		if !m.limited(cfg, 8, func() bool { return m.letters() == 1 }) {
			t.Fatalf("no dead letter after %d deaths", m.deaths)
		}
		if m.deaths > 2 {
			t.Errorf("%d deaths, want 2 at most", m.deaths)
		}
	})
}

// A unit whose first record is overdue goes on beside a retry of its own lane that runs alone.
func TestIsolator_LateUnitIsNotChargedToARetry(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var alone atomic.Int32
		var blame atomic.Bool
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			switch d := consumer.DeliveryOf(ctx, r); {
			case r.Offset == 0 && d.Attempt == 1:
				return classify.Retryable(errBusy)
			case r.Offset == 0:
				alone.Add(1)
				defer alone.Add(-1)
				time.Sleep(8 * time.Second)
			case alone.Load() > 0:
				if text := said(k, "orders.retry.5s", 0); strings.Contains(text, " x=") && !blame.Swap(true) {
					t.Errorf("source offset %d starts beside a retry that is charged: %s", r.Offset, text)
				}
			case r.Offset == 1:
				time.Sleep(stuckTimeout + 5*time.Second)
			}
			return nil
		})
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{5 * time.Second}, -1
		cfg.Policy.HandlerTimeout = stuckTimeout
		c := k.Run(cfg)
		first := k.Produce(many(1)...)
		k.Parked(first[0], 5*time.Second, "")
		stop(t, c)
		left(t, k, "orders.retry.5s", 0, "n=2 s=1 g=AAE")
		k.Produce(many(100)...)
		k.Run(cfg)
		time.Sleep(2 * time.Minute)
	})
}

// From no evidence at all: a record hangs past its timeout and kills. No innocent one, however
// slow, is taken for it.
func TestIsolator_CondemnsNoInnocentForAStuckKiller(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "x", 40)...)
		k.Produce(onPartition(1, "x", 40)...)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && r.Offset == 3 {
				time.Sleep(stuckTimeout + 5*time.Second)
				return true
			}
			return false
		}, slow))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		ok := m.limited(cfg, 10, func() bool { return m.letters() > 0 && k.Cluster.PartitionInfo("orders.dlq", 0).HighWatermark == 1 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			if at := meta.Original; at.Partition != 0 || at.Offset != 3 {
				t.Errorf("the innocent %d/%d is dead-lettered: %s, %s", at.Partition, at.Offset, meta.Reason, meta.Class)
			}
		}
		if !ok {
			t.Errorf("the killer is no dead letter after %d deaths", m.deaths)
		}
	})
}

// As before, and it kills within its timeout while others run beside it, and later when it is
// alone.
func TestIsolator_CondemnsNoInnocentBesideALateKiller(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "x", 300)...)
		k.Produce(onPartition(1, "x", 300)...)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && r.Offset == 3 {
				if time.Sleep(5 * time.Second); m.deaths > 2 {
					time.Sleep(stuckTimeout)
				}
				return true
			}
			return false
		}, slow))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		m.limited(cfg, 10, func() bool { return m.letters() > 0 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			if at := meta.Original; at.Partition != 0 || at.Offset != 3 {
				t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", at.Partition, at.Offset, m.deaths, meta.Reason, meta.Class)
			}
		}
	})
}

// A retry that runs alone, beside a unit of its own lane's source that takes longer than a
// minute though no handler of it is late: a kill there is not charged to the retry.
func TestIsolator_UnitOfItsLaneEndsBeforeARetryRunsAlone(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		var blame atomic.Bool
		var alone atomic.Int32
		cfg := config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Offset == 25 && consumer.DeliveryOf(ctx, r).Attempt == 1 && alone.Load() > 0 && m.deaths == 0
		}, func(ctx context.Context, r *kgo.Record) error {
			switch d := consumer.DeliveryOf(ctx, r); {
			case r.Offset == 0 && d.Attempt == 1:
				return classify.Retryable(errBusy)
			case r.Offset == 0:
				alone.Add(1)
				defer alone.Add(-1)
				time.Sleep(20 * time.Second)
			default:
				if text := said(k, "orders.retry.5s", 0); alone.Load() > 0 && strings.Contains(text, " x=") && !blame.Swap(true) {
					t.Errorf("source offset %d starts beside a retry that is charged: %s", r.Offset, text)
				}
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{5 * time.Second}, -1
		cfg.Policy.HandlerTimeout = 30 * time.Second
		c := k.Run(cfg)
		first := k.Produce(many(1)...)
		k.Parked(first[0], 5*time.Second, "")
		stop(t, c)
		left(t, k, "orders.retry.5s", 0, "n=2 s=1 g=AAE")
		k.Produce(many(100)...)
		m.limited(cfg, 1, func() bool { return m.letters() > 0 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", meta.Original.Partition, meta.Original.Offset, m.deaths, meta.Reason, meta.Class)
		}
	})
}

// The commit that says that a record is being decoded is slow. The record, whose handler takes no
// time, is not named alone while others start.
func TestIsolator_SlowTellingIsNoLateHandler(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			for _, t := range req.(*kmsg.OffsetCommitRequest).Topics {
				for _, p := range t.Partitions {
					if p.Metadata != nil && strings.Contains(*p.Metadata, " x=") {
						k.Cluster.SleepControl(func() { time.Sleep(3 * time.Second) })
						return nil, nil, false
					}
				}
			}
			return nil, nil, false
		})
		k.Produce(onPartition(0, "x", 3)...)
		k.Produce(onPartition(1, "x", 3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		var blame atomic.Bool
		lives := m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 1 {
				text := said(k, "orders", 0)
				if strings.Contains(text, " x=") && !blame.Swap(true) {
					t.Errorf("1/%d starts while the commit says %q", r.Offset, text)
					return m.deaths == 0
				}
			}
			return false
		}, fine)
		cfg := config(consumer.Decode(func(context.Context, *kgo.Record) (int, error) { return 0, nil },
			func(ctx context.Context, r *kgo.Record, _ int) error { return lives(ctx, r) }))
		cfg.Policy.HandlerTimeout = time.Second
		go func() {
			time.Sleep(time.Second)
			for range 60 {
				if m.dead.Load() {
					return
				}
				k.Produce(onPartition(1, "x", 1)...)
				time.Sleep(500 * time.Millisecond)
			}
		}()
		m.limited(cfg, 1, func() bool {
			return m.letters() > 0 || m.deaths == 0 && m.times(&kgo.Record{Partition: 1, Offset: 60}) > 0
		})
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", meta.Original.Partition, meta.Original.Offset, m.deaths, meta.Reason, meta.Class)
		}
	})
}

// A handler takes longer than a minute, within its timeout. None is charged beside it.
func TestIsolator_ChargesNoneBesideALongHandler(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "x", 1)...)
		k.Produce(onPartition(1, "x", 3)...)
		left(t, k, "orders", 1, "n=2 s=3 g=AAM")
		started := make(chan struct{}, 10)
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && m.deaths == 0 {
				started <- struct{}{}
				time.Sleep(90 * time.Second)
				return true
			}
			return false
		}, func(ctx context.Context, _ *kgo.Record) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return ctx.Err()
		}))
		cfg.Policy.HandlerTimeout = 5 * time.Minute
		m.limited(cfg, 1, func() bool { return m.letters() > 0 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", meta.Original.Partition, meta.Original.Offset, m.deaths, meta.Reason, meta.Class)
		}
	})
}

// With the default timeout of a minute: a handler ignores it and kills. None is charged beside
// it.
func TestIsolator_ChargesNoneBesideAStuckOneByDefault(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		k.Produce(onPartition(0, "x", 1)...)
		k.Produce(onPartition(1, "x", 3)...)
		left(t, k, "orders", 1, "n=2 s=3 g=AAM")
		var died atomic.Bool
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			if r.Partition == 0 && !died.Swap(true) {
				time.Sleep(65 * time.Second)
				return true
			}
			return false
		}, func(context.Context, *kgo.Record) error {
			time.Sleep(10 * time.Second)
			return nil
		}))
		m.limited(cfg, 1, func() bool { return m.letters() > 0 })
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", meta.Original.Partition, meta.Original.Offset, m.deaths, meta.Reason, meta.Class)
		}
	})
}

// A record that has run alone has ended; those that it held up start, and one of these kills at
// once. It is not charged to the one that ran alone. A commit takes 20 ms.
func TestIsolator_ChargesNoneThatHasRun(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]string{"the last": "n=2 s=1 g=AAE", "groups behind": "n=2 s=3 g=AAE"}, 2, func(t *testing.T, k *consumertest.Kafka, evidence string) {
		m := newMortal(t, k)
		k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			k.Cluster.SleepControl(func() { time.Sleep(20 * time.Millisecond) })
			return nil, nil, false
		})
		k.Produce(onPartition(0, "x", 3)...)
		left(t, k, "orders", 0, evidence)
		var died atomic.Bool
		var once atomic.Bool
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			return r.Partition == 1 && !died.Swap(true)
		}, func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && r.Offset == 0 && !once.Swap(true) {
				k.Produce(onPartition(1, "x", 1)...)
				time.Sleep(3 * time.Second)
			}
			return nil
		}))
		m.limited(cfg, 1, func() bool { return m.letters() > 0 })
		if m.letters() > 0 {
			for _, r := range content(t, k, "orders.dlq") {
				meta, _ := headers.Parse(r.Headers)
				t.Errorf("the innocent %d/%d is dead-lettered after %d deaths: %s, %s", meta.Original.Partition, meta.Original.Offset, m.deaths, meta.Reason, meta.Class)
			}
		}
	})
}
