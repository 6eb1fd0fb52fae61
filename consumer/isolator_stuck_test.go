package consumer_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// A suspect whose handler ignores its timeout holds up its own partition only, whether it runs in a
// group or alone, and whether or not the others are suspects. It stays named until it returns.
func TestIsolator_StuckSuspectHoldsUpNoOtherLane(t *testing.T) {
	const alone = "n=2 s=3 g=AAM"
	each(t, cases.Cross(cases.Cross(orders, map[string]string{"in groups": "n=2 s=3", "alone": alone}),
		map[string]string{"others": "", "suspects in groups": "n=2 s=40", "suspects alone": "n=2 s=40 g=ACg"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, string], string]) {
			guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 40)...)
			left(t, k, "orders", 0, c.A.B)
			if c.B != "" {
				left(t, k, "orders", 1, c.B)
			}
			stuck, released := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			defer release()
			var done ran
			cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
				if r.Partition == 0 && r.Offset == 1 {
					close(stuck)
					<-released
				}
				return nil
			}))
			cfg.Order, cfg.Policy.HandlerTimeout = c.A.A, stuckTimeout
			k.Run(cfg)
			<-stuck
			time.Sleep(stuckTimeout + 4*time.Second)
			for range 10 {
				others = append(others, k.Produce(onPartition(1, "fine", 10)...)...)
				time.Sleep(time.Second)
			}
			for _, r := range others {
				if done.times(r) == 0 {
					t.Fatalf("%d/%d has not run: %s", r.Partition, r.Offset, said(k, "orders", 1))
				}
			}
			if text := said(k, "orders", 0); strings.Contains(text, " x=0") != (c.A.B == alone) || !strings.Contains(text, " g=") {
				t.Errorf("the commit says %q, want its record named as before", text)
			}
			release()
			done.all(t, guilty)
			eventually(t, "it is named no longer", func() bool { return !strings.Contains(said(k, "orders", 0), " x=") })
			holds(t, k, "orders.dlq", 0)
			k.Conserved()
		})
}

// After a decoder returns while others already go on, a commit says that its handler runs.
func TestIsolator_StuckDecoderIsToldFromItsHandler(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 10)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		decode, release := make(chan struct{}), make(chan struct{})
		var done ran
		cfg := config(consumer.Decode(func(_ context.Context, r *kgo.Record) (int, error) {
			if r.Partition == 0 && r.Offset == 1 {
				<-decode
			}
			return 0, nil
		}, func(ctx context.Context, r *kgo.Record, _ int) error {
			if r.Partition == 0 && r.Offset == 1 {
				<-release
			}
			return done.after(fine)(ctx, r)
		}))
		cfg.Policy.HandlerTimeout, cfg.Policy.Tiers = stuckTimeout, []time.Duration{tier1}
		k.Run(cfg)
		eventually(t, "it is decoded", func() bool { return strings.Contains(said(k, "orders", 0), " x=0d") })
		time.Sleep(stuckTimeout + 4*time.Second)
		done.all(t, others)
		close(decode)
		// Its time is over: it goes to a retry topic, and is named no longer.
		k.Parked(guilty[1], tier1, "decode.timeout")
		eventually(t, "it is named no longer", func() bool { return !strings.Contains(said(k, "orders", 0), " x=") })
		close(release)
		done.all(t, guilty)
	})
}

// The commits that say whether a record is being decoded take no time of its handler.
func TestIsolator_TellingTakesNoTimeOfTheHandler(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if p := req.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0]; p.Metadata != nil && strings.Contains(*p.Metadata, " x=") {
				k.Cluster.SleepControl(func() { time.Sleep(2 * time.Second) })
			}
			return nil, nil, false
		})
		guilty := k.Produce(many(3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		var done ran
		cfg := config(consumer.Decode(func(context.Context, *kgo.Record) (int, error) { return 0, nil },
			func(ctx context.Context, r *kgo.Record, _ int) error { return done.after(fine)(ctx, r) }))
		cfg.Policy.HandlerTimeout = time.Second
		k.Run(cfg)
		done.all(t, guilty)
		holds(t, k, "orders.retry.300ms", 0)
	})
}

// A handler that ignores a drain has not killed its process: its record is no dead letter.
func TestIsolator_StuckHandlerIsNoDeath(t *testing.T) {
	each(t, balancers, 1, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		records := k.Produce(many(3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		release := make(chan struct{})
		cfg := config(until(release))
		cfg.DrainTimeout = time.Second
		cfg.Kafka = opts
		c := k.Run(cfg)
		eventually(t, "it runs alone", func() bool { return strings.Contains(said(k, "orders", 0), " x=0") })
		_ = c.Err() // a StuckError
		if text := said(k, "orders", 0); strings.Contains(text, " x=") || !strings.Contains(text, " g=") {
			t.Errorf("the commit says %q, want its record among those that run one by one", text)
		}
		close(release)
		var done ran
		cfg.Handler = done.after(fine)
		k.Run(cfg)
		done.all(t, records)
		holds(t, k, "orders.dlq", 0)
	})
}

// A suspect that ran alone ignores its timeout, fails, and is repeated in place.
func TestIsolator_StuckOneIsRepeatedInPlace(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		guilty := k.Produce(onPartition(0, "fine", 2)...)
		k.Produce(onPartition(1, "fine", 20)...)
		left(t, k, "orders", 0, "n=2 s=1 g=AAE")
		left(t, k, "orders", 1, "n=2 s=20 g=ABQ")
		var done ran
		var alone, calls atomic.Int32
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 1 {
				alone.Add(1)
				time.Sleep(3 * time.Second)
				alone.Add(-1)
				return nil
			}
			if r.Offset == 0 {
				if calls.Add(1) == 1 {
					time.Sleep(stuckTimeout + 4*time.Second)
					return classify.Retryable(errBusy)
				}
				if text := said(k, "orders", 1); alone.Load() > 0 && strings.Contains(text, " x=") {
					t.Errorf("0/%d starts again beside one that is charged: %s; %s", r.Offset, said(k, "orders", 0), text)
				}
				time.Sleep(2 * time.Second)
				return nil
			}
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout = order, stuckTimeout
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1}
		k.Run(cfg)
		time.Sleep(2 * time.Minute)
		done.all(t, guilty[:1])
		if calls.Load() != 2 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

// A suspect that waits to be repeated in place, of a topic that is paused, holds up no other topic.
func TestIsolator_PausedSuspectHoldsUpNoOtherTopic(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=3", "alone": "n=2 s=3 g=AAM"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
		k.CreateTopic("others", 1)
		k.Produce(many(3)...)
		left(t, k, "orders", 0, c.B)
		left(t, k, "others", 0, "n=2 s=3 g=AAM")
		for range 3 {
			k.Produce(&kgo.Record{Topic: "others", Value: []byte("x")})
		}
		failed := make(chan struct{}, 100)
		var others atomic.Int32
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Topic == "others" {
				others.Add(1)
				return nil
			}
			failed <- struct{}{}
			return classify.Retryable(errBusy)
		})
		cfg.Topics = []string{"orders", "others"}
		cfg.Order = c.A
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: time.Second, Max: time.Second}
		run := k.Run(cfg)
		<-failed
		run.Pause("orders")
		time.Sleep(10 * time.Minute)
		if n := others.Load(); n != 3 {
			t.Errorf("%d of 3 records of another topic have run within ten minutes", n)
		}
		run.Resume("orders")
	})
}

// A handler of a lane that the member lost ignores its context. The lanes of the next session run.
func TestIsolator_ZombieHoldsUpNoOtherLane(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, map[string][]kgo.Opt{"cooperative": nil, "eager": {kgo.Balancers(kgo.RangeBalancer())}}), map[string]time.Duration{"no timeout": -1, "an hour": time.Hour}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], time.Duration]) {
		k.Produce(onPartition(0, "guilty", 3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		stuck, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		var once atomic.Bool
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && once.CompareAndSwap(false, true) {
				close(stuck)
				<-release
			}
			return nil
		}))
		cfg.Order, cfg.Kafka, cfg.Policy.HandlerTimeout = c.A.A, c.A.B, c.B
		cfg.DrainTimeout = time.Second
		k.Run(cfg)
		<-stuck
		expel(t, k, 0)
		others := k.Produce(onPartition(1, "fine", 10)...)
		time.Sleep(10 * time.Minute)
		n := 0
		for _, r := range others {
			n += min(1, done.times(r))
		}
		if n != 10 {
			t.Errorf("%d of 10 records of another partition have run; said %q", n, said(k, "orders", 0))
		}
	})
}

// A suspect is stuck in a hold.
func TestIsolator_StuckProbeHoldsUpNoOtherLane(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=30", "alone": "n=2 s=30 g=AB4"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
			s := &service{}
			s.down.Store(true)
			k.Produce(onPartition(0, "x", 30)...)
			others := k.Produce(onPartition(1, "x", 1000)...)
			left(t, k, "orders", 0, c.B)
			cfg := withBreaker(s)
			cfg.Order, cfg.Policy.HandlerTimeout = c.A, stuckTimeout
			began := time.Now()
			release := make(chan struct{})
			defer close(release)
			cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
				if r.Partition == 0 && time.Since(began) > 30*time.Second {
					<-release
				}
				return s.handle(ctx, r)
			}
			handled := watch(&cfg)
			k.Run(cfg)
			time.Sleep(5 * time.Minute)
			s.down.Store(false)
			time.Sleep(20 * time.Minute)
			n := 0
			for _, r := range others {
				if handled(r) {
					n++
				}
			}
			if n != len(others) {
				t.Errorf("%d of %d have run: %s / %s", n, len(others), said(k, "orders", 0), said(k, "orders", 1))
			}
		})
}

// Two stuck suspects in one feed, and a third lane. All but these two run.
func TestIsolator_TwoStuckHoldUpNoOther(t *testing.T) {
	each(t, cases.Cross(map[string]consumer.Order{"key": consumer.OrderKey, "none": consumer.OrderNone}, map[string]string{"in groups": "n=2 s=20", "alone": "n=2 s=20 g=ABQ"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
		records := k.Produce(many(20)...)
		left(t, k, "orders", 0, c.B)
		release := make(chan struct{})
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Offset == 5 || r.Offset == 9 {
				<-release
			}
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout = c.A, stuckTimeout
		k.Run(cfg)
		time.Sleep(time.Minute)
		for _, r := range records {
			if (done.times(r) == 0) != (r.Offset == 5 || r.Offset == 9) {
				t.Errorf("%d ran %d times", r.Offset, done.times(r))
			}
		}
		close(release)
		done.all(t, records)
		done.all(t, k.Produce(many(10)...))
		holds(t, k, "orders.dlq", 0)
	})
}

// Beside a handler that ignores its timeout no record runs alone. So the other suspects wait for no
// long handler of another lane, and that lane goes on.
func TestIsolator_SuspectsWaitForNoOtherBesideAStuckOne(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var suspects []*kgo.Record
		for _, key := range keysAmong(0, 2, 20) {
			suspects = append(suspects, k.Produce(&kgo.Record{Topic: "orders", Key: key})...)
		}
		others := k.Produce(onPartition(1, "fine", 10)...) // of one key: one after the other
		left(t, k, "orders", 0, "n=2 s=20 g=ABQ")
		release, last := make(chan struct{}), suspects[19]
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			switch {
			case r.Partition == 1 && done.times(last) == 0:
				time.Sleep(stuckTimeout - time.Second)
			case r.Partition == 1:
			case r.Offset == last.Offset: // it runs first
				<-release
			default:
				time.Sleep(time.Second)
			}
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout = consumer.OrderKey, stuckTimeout
		k.Run(cfg)
		time.Sleep(3*stuckTimeout + time.Duration(len(suspects))*time.Second)
		for _, r := range suspects[:19] {
			if done.times(r) != 1 {
				t.Errorf("suspect %d has run %d times", r.Offset, done.times(r))
			}
		}
		close(release)
		done.all(t, suspects)
		done.all(t, others)
	})
}

// A stuck retry that is a suspect: the other retries and the source run.
func TestIsolator_StuckRetryHoldsUpNoOther(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=20", "alone": "n=2 s=20 g=ABQ"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
		const tier = "orders.retry.1m"
		release := make(chan struct{})
		var done ran
		cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 && r.Offset < 20 {
				return classify.Retryable(errBusy)
			}
			if r.Offset == 5 {
				<-release
			}
			return nil
		}))
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		cfg.Order, cfg.Policy.HandlerTimeout = c.A, stuckTimeout
		first := k.Run(cfg)
		records := k.Produce(many(20)...)
		for _, r := range records {
			k.Parked(r, time.Minute, "")
		}
		stop(t, first)
		left(t, k, tier, 0, c.B)
		k.Run(cfg)
		records = append(records, k.Produce(many(20)...)...)
		time.Sleep(3 * time.Minute)
		if c.A != consumer.OrderPartition {
			for _, r := range records {
				if (done.times(r) == 0) != (r.Offset == 5) && string(r.Key) != string(records[5].Key) {
					t.Errorf("%d ran %d times; %s", r.Offset, done.times(r), said(k, tier, 0))
				}
			}
		} else {
			for _, r := range records[20:] {
				if done.times(r) == 0 {
					t.Errorf("%d has not run", r.Offset)
				}
			}
		}
		close(release)
		done.all(t, records)
		holds(t, k, "orders.dlq", 0)
	})
}

// The lane of a stuck suspect is revoked, and comes back to the same process. Others run, nothing
// is dead-lettered.
func TestIsolator_StuckOneComesBack(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, balancers), map[string]string{"in groups": "n=2 s=3", "alone": "n=2 s=3 g=AAM"}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], string]) {
		guilty, others := k.Produce(onPartition(0, "x", 3)...), k.Produce(onPartition(1, "x", 10)...)
		left(t, k, "orders", 0, c.B)
		release := make(chan struct{})
		var calls atomic.Int32
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && r.Offset == 1 && calls.Add(1) < 3 {
				<-release
			}
			return nil
		}))
		cfg.Order, cfg.Kafka, cfg.Policy.HandlerTimeout = c.A.A, c.A.B, stuckTimeout
		cfg.DrainTimeout = time.Second
		k.Run(cfg)
		time.Sleep(stuckTimeout + 4*time.Second)
		expel(t, k, 0)
		time.Sleep(2 * time.Minute)
		done.all(t, others)
		second := k.Run(cfg)
		time.Sleep(2 * time.Minute)
		stopStuck(t, second)
		time.Sleep(2 * time.Minute)
		close(release)
		done.all(t, guilty)
		done.all(t, k.Produce(onPartition(1, "x", 10)...))
		holds(t, k, "orders.dlq", 0)
	})
}
