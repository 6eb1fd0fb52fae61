package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

var unordered = map[string]consumer.Order{"key": consumer.OrderKey, "none": consumer.OrderNone}

// A kept record returns while suspects of its own feed are named and wait for a worker. They
// must run.
func TestIsolator_LateOneReturnsWhileAGroupWaits(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(unordered, map[string]time.Duration{"b": 1300 * time.Millisecond}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, time.Duration]) {
		records := k.Produce(many(640)...)
		left(t, k, "orders", 0, "n=2 s=640 g=AAE")
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Offset == 0 {
				time.Sleep(stuckTimeout + 10*time.Second + c.B)
				return nil
			}
			time.Sleep(time.Second)
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout, cfg.Concurrency = c.A, stuckTimeout, 3
		k.Run(cfg)
		time.Sleep(30 * time.Minute)
		n := 0
		for _, r := range records {
			n += min(1, done.times(r))
		}
		if n != len(records) {
			t.Errorf("%d of %d have run within 30 minutes: %s", n, len(records), said(k, "orders", 0))
		}
	})
}

// The same with a retry that ran alone: the retries that are named beside it must run.
func TestIsolator_LateRetryReturnsWhileOthersWait(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(unordered, map[string]time.Duration{"b": 1300 * time.Millisecond}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, time.Duration]) {
		const tier = "orders.retry.1m"
		const n = 640
		var done ran
		cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 && r.Offset < int64(n) {
				return classify.Retryable(errBusy)
			}
			if r.Offset == 0 {
				time.Sleep(stuckTimeout + 10*time.Second + c.B)
				return nil
			}
			time.Sleep(time.Second)
			return nil
		}))
		cfg.Policy.Tiers, cfg.Policy.Jitter, cfg.Policy.RetryBudget.Off = []time.Duration{time.Minute}, -1, true
		cfg.Order, cfg.Policy.HandlerTimeout, cfg.Concurrency = c.A, stuckTimeout, 3
		first := k.Run(cfg)
		var records []*kgo.Record
		for i := range n {
			records = append(records, k.Produce(&kgo.Record{Topic: "orders", Key: fmt.Append(nil, "key-", i), Value: []byte("x")})...)
		}
		for _, r := range records {
			k.Parked(r, time.Minute, "")
		}
		stop(t, first)
		left(t, k, tier, 0, fmt.Sprintf("n=2 s=%d g=AAE", n))
		time.Sleep(2 * time.Minute)
		k.Run(cfg)
		time.Sleep(30 * time.Minute)
		ran := 0
		for _, r := range records {
			ran += min(1, done.times(r))
		}
		if ran != len(records) {
			t.Errorf("%d of %d have run within 30 minutes: %s", ran, len(records), said(k, tier, 0))
		}
	})
}

// A record of no suspicion waits between in-place runs, its topic is paused. Suspects of another
// topic run alone, and a third topic runs on.
func TestIsolator_PausedInPlaceHoldsUpNoOtherTopic(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		k.CreateTopic("others", 1)
		k.CreateTopic("third", 1)
		guilty := k.Produce(many(20)...)
		left(t, k, "orders", 0, "n=2 s=20 g=ABQ")
		k.Produce(&kgo.Record{Topic: "others", Value: []byte("x")})
		failed := make(chan struct{}, 100)
		var done ran
		var third atomic.Int32
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			switch r.Topic {
			case "others":
				failed <- struct{}{}
				return classify.Retryable(errBusy)
			case "third":
				third.Add(1)
			}
			return nil
		}))
		cfg.Topics = []string{"orders", "others", "third"}
		cfg.Order = order
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: time.Second, Max: time.Second}
		run := k.Run(cfg)
		<-failed
		run.Pause("others")
		for range 180 {
			k.Produce(&kgo.Record{Topic: "third", Value: []byte("x")})
			time.Sleep(time.Second)
		}
		n := 0
		for _, r := range guilty {
			n += min(1, done.times(r))
		}
		if got := third.Load(); got < 170 || n < 20 {
			t.Errorf("within three minutes, %d of 20 suspects have run, and %d of 180 records of a third topic; %s", n, got, said(k, "orders", 0))
		}
		run.Resume("others")
	})
}

// Retries wait for the budget, and a suspect among them is to run alone. Another topic runs.
func TestIsolator_RetryBudgetHoldsUpNoOtherTopic(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		k.CreateTopic("third", 1)
		const tier = "orders.retry.5m"
		var worst, late, total atomic.Int64
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Topic == "third" {
				d := int64(time.Since(r.Timestamp))
				worst.Store(max(worst.Load(), d))
				if total.Add(1); d > int64(time.Second) {
					late.Add(1)
				}
				return nil
			}
			return classify.Retryable(errBusy)
		})
		cfg.Topics = []string{"orders", "third"}
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{5 * time.Minute}, -1
		cfg.Policy.MaxAttempts, cfg.Policy.RetryBudget.Off = 20, false
		cfg.Order = order
		first := k.Run(cfg)
		for range 20 {
			k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(0), Value: []byte("x")})
			for range 20 {
				k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(1), Value: []byte("x")})
			}
			time.Sleep(7 * time.Second)
		}
		stop(t, first)
		left(t, k, tier, 0, "n=2 s=20 g=ABQ")
		k.Run(cfg)
		for range 600 {
			k.Produce(&kgo.Record{Topic: "third", Value: []byte("x")})
			time.Sleep(time.Second)
		}
		t.Logf("the worst latency of a third topic is %v; %d of %d late by more than a second; %s", time.Duration(worst.Load()), late.Load(), total.Load(), said(k, tier, 0))
		if late.Load() > 5 {
			t.Errorf("too late")
		}
	})
}

// The zombie test under KIP-848.
func TestIsolator_ZombieOfAServerSideGroupHoldsUpNoOther(t *testing.T) {
	each(t, cases.Cross(orders, map[string]time.Duration{"no timeout": -1, "an hour": time.Hour}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, time.Duration]) {
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
		cfg.Order, cfg.Kafka, cfg.Policy.HandlerTimeout = c.A, []kgo.Opt{kgo.ServerSideBalancer()}, c.B
		cfg.DrainTimeout = time.Second
		k.Run(cfg)
		<-stuck
		// the member is silent for longer than its session
		var silent atomic.Bool
		silent.Store(true)
		k.Cluster.ControlKey(kmsg.ConsumerGroupHeartbeat.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if silent.Load() {
				return nil, fmt.Errorf("silence"), true
			}
			return nil, nil, false
		})
		time.Sleep(2 * time.Minute)
		silent.Store(false)
		others := k.Produce(onPartition(1, "fine", 10)...)
		time.Sleep(10 * time.Minute)
		n := 0
		for _, r := range others {
			n += min(1, done.times(r))
		}
		if n != 10 {
			t.Errorf("%d of 10 records of another partition have run; said %q", n, said(k, "orders", 0))
		}
		holds(t, k, "orders.dlq", 0)
	})
}

// Hundreds of single suspects while one is kept: commits stay few, two for each that runs.
func TestIsolator_CommitsAreFewBesideALateOne(t *testing.T) {
	each(t, cases.Cross(unordered, map[string]bool{"a wait": true, "none": false}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, bool]) {
		var commits atomic.Int64
		k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			commits.Add(1)
			return nil, nil, false
		})
		k.Produce(onPartition(0, "x", 300)...)
		k.Produce(onPartition(1, "x", 300)...)
		left(t, k, "orders", 0, "n=2 s=300 g=AKwC")
		left(t, k, "orders", 1, "n=2 s=300 g=AKwC")
		release := make(chan struct{})
		defer close(release)
		var n atomic.Int64
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Offset == 2 {
				<-release
			}
			if c.B {
				time.Sleep(3 * time.Second)
			}
			n.Add(1)
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = c.A, stuckTimeout
		k.Run(cfg)
		for range 10 {
			time.Sleep(time.Minute)
			if all, records := commits.Swap(0), n.Swap(0); all > 10+2*records {
				t.Errorf("%d commits for %d records: %s", all, records, strings.TrimSpace(said(k, "orders", 0)))
			}
		}
	})
}

// Suspects that are repeated in place while their topic is paused and resumed, and some hang
// past their timeouts: none is lost or handled twice, and they keep their order.
func TestIsolator_PausesKeepTheOrderOfSuspects(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, map[string]string{"groups": "n=2 s=120", "alone": "n=2 s=120 g=AHg", "both": "n=2 s=120 g=ACg"}), map[string]bool{"late": true, "none": false}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, string], bool]) {
		var records []*kgo.Record
		for i := range 360 {
			records = append(records, k.Produce(&kgo.Record{Topic: "orders", Key: fmt.Append(nil, "key-", i%20), Value: []byte("x")})...)
		}
		left(t, k, "orders", 0, c.A.B)
		left(t, k, "orders", 1, c.A.B)
		var mu sync.Mutex
		calls, done, last, running := map[[2]int64]int{}, map[[2]int64]int{}, map[string]int64{}, map[string]bool{}
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			at := [2]int64{int64(r.Partition), r.Offset}
			group := ""
			switch c.A.A {
			case consumer.OrderPartition:
				group = fmt.Sprint(r.Partition)
			case consumer.OrderKey:
				group = string(r.Key)
			}
			mu.Lock()
			if group != "" && running[group] {
				t.Errorf("%v runs beside another of %s", at, group)
			}
			running[group] = true
			calls[at]++
			n := calls[at]
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running[group] = false
			}()
			if c.B && r.Offset%40 == 7 && n == 1 {
				time.Sleep(3*time.Second + 500*time.Millisecond)
			} else {
				time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			}
			if r.Offset%3 == 0 && n <= 2 {
				return classify.Retryable(errBusy)
			}
			mu.Lock()
			defer mu.Unlock()
			if done[at]++; done[at] > 1 {
				t.Errorf("%v is handled %d times", at, done[at])
			}
			if group != "" {
				if l, ok := last[group]; ok && l >= r.Offset {
					t.Errorf("%v is handled behind %d of %s", at, l, group)
				}
				last[group] = r.Offset
			}
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = c.A.A, 2*time.Second
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 4, Base: 50 * time.Millisecond, Max: 200 * time.Millisecond}
		run := k.Run(cfg)
		for range 300 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			run.Pause("orders")
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
			run.Resume("orders")
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(done) != len(records) {
			t.Errorf("%d of %d: %s / %s", len(done), len(records), said(k, "orders", 0), said(k, "orders", 1))
		}
	})
}
