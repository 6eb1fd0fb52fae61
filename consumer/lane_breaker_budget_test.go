package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// Retries that fail again are a fifth of all runs at most, or a hundred in ten seconds. Those that
// succeed are not slowed down, and the source is not.
func TestLane_BreakerBudgetHoldsRetriesThatFailAgain(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 0
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{10 * time.Second}, MaxAttempts: 3, Jitter: -1}
		log := logged(&cfg)
		var mu sync.Mutex
		again := map[int64]int{} // failed retries by second
		var late time.Duration   // of source records
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			err := s.handle(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			facts := consumer.DeliveryOf(ctx, r)
			if err != nil && facts.Attempt > 1 {
				again[time.Now().Unix()]++
			}
			if facts.Attempt == 1 && string(r.Value) == "live" {
				late = max(late, time.Since(r.Timestamp))
			}
			return err
		}
		c := k.Run(cfg)
		// A storm of records that fail for good, a third of all.
		for range 10 {
			k.Produce(onPartition(0, "fine", 100)...)
			k.Produce(onPartition(1, "fine", 100)...)
			k.Produce(onPartition(0, "bad", 50)...)
			k.Produce(onPartition(1, "bad", 50)...)
			time.Sleep(200 * time.Millisecond)
		}
		storm := time.Now().Add(10 * time.Second).Unix()
		time.Sleep(20 * time.Second)
		if why := c.Health().Lanes[0].Why + c.Health().Lanes[1].Why; why == "" || !c.Health().OK {
			t.Errorf("health is %+v, want lanes that say why retries wait", c.Health())
		}
		for range 60 {
			k.Produce(onPartition(0, "live", 1)...)
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		k.Conserved()
		if n := s.failed.Load(); n != 3*1000 {
			t.Errorf("%d runs failed, want three of each bad record", n)
		}
		mu.Lock()
		defer mu.Unlock()
		worst := 0
		for second := range again {
			sum := 0
			for i := range int64(9) { // whole seconds of one window
				sum += again[second+i]
			}
			if second > storm { // no run of the storm is in the window
				worst = max(worst, sum)
			}
		}
		if worst > 100+64 || late > 2*time.Second {
			t.Errorf("%d retries failed again within ten seconds, want 100 and what ran; a source record was %v late", worst, late)
		}
		if log.with("due retries wait") == 0 {
			t.Error("the log does not tell that retries wait")
		}
	})
}

// The first delivery of a redriven record is no retry: it does not wait for the budget, though the
// retries before it do.
func TestLane_BreakerBudgetLetsRedrivenRecordsRun(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{10 * time.Second}, MaxAttempts: 9, Jitter: -1}
		var redriven atomic.Int64
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).RedriveID != "" {
				redriven.Add(1)
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		bad := onPartition(0, "bad", 600)
		for i := range bad {
			k.Produce(&kgo.Record{Topic: "orders", Value: []byte("fine")}, &kgo.Record{Topic: "orders", Value: []byte("fine")}, bad[i])
		}
		time.Sleep(15 * time.Second)
		letter := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("fine")})[0]
		m := headers.Meta{
			Group: cfg.Group, NotBefore: time.Now(),
			Original: headers.Position{Topic: "orders", Offset: letter.Offset, Timestamp: letter.Timestamp},
			Redrive:  headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: time.Now()},
		}
		failed := s.failed.Load()
		k.Produce(&kgo.Record{Topic: "orders.retry.10s", Value: []byte("fine"), Headers: m.Append(nil)})
		time.Sleep(2 * time.Second)
		if l := c.Health().Lanes[0]; l.Queued < 100 || s.failed.Load() != failed {
			t.Fatalf("%d retries failed again, and the lane is %+v; want the budget used up", s.failed.Load()-failed, l)
		}
		if n := redriven.Load(); n != 1 {
			t.Errorf("%d redriven records ran, want the one", n)
		}
	})
}

// All runs count for the budget, also while the breaker is off. Workers tell of them by the tick
// then.
func TestLane_BreakerBudgetCountsWithoutTheBreaker(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order = order
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{8 * time.Second}, MaxAttempts: 2, Jitter: -1, Breaker: noBreaker}
		var late lateness
		inner := cfg.Handler
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			late.note(consumer.DeliveryOf(ctx, r))
			return inner(ctx, r)
		}
		k.Run(cfg)
		k.Produce(onPartition(0, "bad", 400)...)
		time.Sleep(5 * time.Second)
		k.Produce(onPartition(0, "fine", 2000)...)
		time.Sleep(10 * time.Second)
		if n := s.failed.Load(); n != 800 {
			t.Errorf("%d runs failed, want two of each bad record", n)
		}
		late.check(t, cfg.Policy.Tiers...)
		k.Conserved()
	})
}

// Half of the retries succeed, and the source is idle. A retry that ended well made room in the
// budget, but nobody took the next ones: they waited until a record came.
func TestLane_BreakerBudgetRunsAllRetriesWithoutTheSource(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{takes: 20 * time.Millisecond}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 8
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{10 * time.Second}, MaxAttempts: 4, Jitter: -1, Breaker: noBreaker}
		cfg.Hooks = []consumer.Hook{routed}
		inner := cfg.Handler
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return inner(ctx, r)
		}
		k.Run(cfg)
		for range 500 {
			k.Produce(onPartition(0, "bad", 1)...)
			k.Produce(onPartition(1, "fine", 1)...)
		}
		// 1,500 retries fail again, ten a second.
		for end := time.Now().Add(5 * time.Minute); routed.dead.Load() < 500 && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		if n := routed.dead.Load(); n != 500 {
			t.Errorf("%d of 500 records that fail for good are dead letters after five minutes", n)
		}
		k.Conserved()
	})
}

// Under OrderKey, retries that wait for the budget have no claim to their keys. Others of the key
// waited with them, for minutes: source records that came just before the budget was used up, and
// redriven records at any time.
func TestLane_BreakerBudgetHoldsNoOtherRecordOfTheKey(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const n = 1000
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = consumer.OrderKey, 8
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{10 * time.Second}, MaxAttempts: 3, Jitter: -1, Breaker: noBreaker}
		var source, redriven, retried atomic.Int64
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			switch is := consumer.DeliveryOf(ctx, r); {
			case is.RedriveID != "":
				redriven.Add(1)
			case string(r.Value) == "live":
				source.Add(1)
			case is.Attempt > 1:
				retried.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		key := func(i int) []byte { return fmt.Append(nil, "customer ", i) }
		for i := range n {
			k.Produce(&kgo.Record{Topic: "orders", Key: key(i), Value: []byte("bad")})
		}
		eventually(t, "the first retries fail", func() bool { return retried.Load() > 20 })
		for i := range 5 {
			k.Produce(&kgo.Record{Topic: "orders", Key: key(230 + i), Value: []byte("live")})
		}
		if c.Health().Lanes[0].Why != "" {
			t.Fatal("the budget is used up already")
		}
		time.Sleep(8 * time.Second)
		if l := c.Health().Lanes[0]; l.Queued < 200 || l.Why == "" {
			t.Fatalf("%d retries ran, and the lane is %+v; want the budget used up", retried.Load(), l)
		}
		if got := source.Load(); got != 5 {
			t.Errorf("%d of 5 source records ran beside the retries of their keys that wait", got)
		}
		for i := range 100 {
			m := headers.Meta{
				Group: cfg.Group, NotBefore: time.Now(), Original: headers.Position{Topic: "orders", Offset: int64(i), Timestamp: time.Now()},
				Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: time.Now()},
			}
			k.Produce(&kgo.Record{Topic: "orders.retry.10s", Key: key(200 + i), Value: []byte("live"), Headers: m.Append(nil)})
		}
		time.Sleep(time.Second / 2)
		if got := redriven.Load(); got != 100 {
			t.Errorf("%d of 100 redriven records ran beside the retries of their keys that wait", got)
		}
	})
}
