package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// The source comes in batches with gaps, and no rule names the error, so each record that fails
// beside a hold is dead. The hold ended in each gap of more than two seconds: all 1,700 died.
func TestLane_GuardHoldLastsOverGapsOfTheSource(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{fault: func() error { return errBusy }}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Hooks = order, []consumer.Hook{routed}
		k.Run(cfg)
		s.down.Store(true)
		for range 170 {
			k.Produce(many(10)...)
			time.Sleep(3500 * time.Millisecond)
		}
		if n := routed.dead.Load(); n > 150 {
			t.Errorf("%d records are dead, want those until the hold", n)
		}
	})
}

// Hundreds wait behind a record that has run since before the hold. It ended, and they went to
// their tier.
func TestLane_GuardHoldGoesOnBehindARunningRecord(t *testing.T) {
	each(t, map[string]consumer.Order{"partition": consumer.OrderPartition, "key": consumer.OrderKey}, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Hooks, cfg.Concurrency = order, []consumer.Hook{routed}, 0
		var hangs atomic.Bool
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if r.Partition == 0 && consumer.DeliveryOf(ctx, r).Tier == 0 && hangs.CompareAndSwap(true, false) {
				_ = takes(ctx, 50*time.Second)
				return classify.Retryable(errDown)
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		s.down.Store(true)
		for i := 0; !isHeld(c); i++ {
			k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(1)})
			if i == 90 {
				hangs.Store(true)
				for range 500 {
					k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(0)})
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		before := routed.parked.Load()
		time.Sleep(4 * time.Minute)
		if n := routed.parked.Load() - before; n > 1 || !isHeld(c) {
			t.Errorf("%d records went to their tier; held: %v", n, isHeld(c))
		}
	})
}

// The source cannot be read for a while after a rejoin: its leader moves, or READ is taken away.
func TestLane_GuardHoldGoesOnWhileTheSourceCannotBeRead(t *testing.T) {
	type unreadable struct {
		err  *kerr.Error
		long time.Duration
	}
	each(t, map[string]unreadable{
		"a leader moves": {kerr.NotLeaderForPartition, 40 * time.Second},
		"READ is denied": {kerr.TopicAuthorizationFailed, 3 * time.Minute},
	}, 1, func(t *testing.T, k *consumertest.Kafka, is unreadable) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		s.hold(k, c)
		k.Produce(many(500)...)
		time.Sleep(time.Minute)
		before := routed.parked.Load()
		for i := range 3 {
			fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Count: -1, Err: is.err})
			expel(t, k, 0)
			time.Sleep(is.long)
			fault.Remove()
			time.Sleep(time.Minute)
			if n := routed.parked.Load() - before; n > 0 {
				t.Fatalf("%d records went to their tier after %d rejoins", n, i+1)
			}
		}
	})
}

// A lane cannot write its copies, and the source of the other one is idle. Its retries waited for
// an hour after the outage's end.
func TestLane_GuardBlockedLaneKeepsNoHold(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Hooks, cfg.MaxInFlight = order, []consumer.Hook{routed}, 20
		handle := cfg.Handler
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "term" {
				return classify.Terminal(errBusy)
			}
			return handle(ctx, r)
		}
		c := k.Run(cfg)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Partitions: []int32{1}, Count: -1, Err: kerr.NotEnoughReplicas})
		k.Produce(onPartition(1, "term", 40)...)
		time.Sleep(time.Second)
		s.down.Store(true)
		for !isHeld(c) {
			k.Produce(&kgo.Record{Topic: "orders", Key: keyOf(0)})
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(3 * time.Minute)
		s.down.Store(false)
		time.Sleep(90 * time.Second)
		if isHeld(c) {
			t.Error("held a minute and a half after the outage's end, beside a blocked lane")
		}
		fault.Remove()
	})
}

// A probe fails after another lane's was good. Beside a handler that hangs there is no round, nor
// an end of the hold, for five minutes: its record runs again at once.
func TestLane_GuardProbeThatFailsLateRunsAgain(t *testing.T) {
	each(t, orders, 3, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 0
		release := make(chan struct{})
		var good, slow, hung, armed atomic.Bool
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			switch v := string(r.Value); {
			case armed.Load() && v == "hang":
				hung.Store(true)
				<-release
				return nil
			case armed.Load() && v == "slow" && slow.CompareAndSwap(false, true):
				time.Sleep(20 * time.Second)
				return classify.Retryable(errDown)
			}
			err := s.handle(ctx, r)
			if err == nil && string(r.Value) == "slow" {
				good.Store(true)
			}
			return err
		}
		c := k.Run(cfg)
		s.down.Store(true)
		for !isHeld(c) {
			k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(0, 3)})
			time.Sleep(50 * time.Millisecond)
		}
		k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(0, 3)}, &kgo.Record{Topic: "orders", Key: keyAmong(1, 3), Value: []byte("slow")}, &kgo.Record{Topic: "orders", Key: keyAmong(2, 3), Value: []byte("hang")})
		time.Sleep(2 * time.Minute)
		armed.Store(true)
		for !slow.Load() || !hung.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		s.down.Store(false)
		time.Sleep(40 * time.Second)
		if !good.Load() {
			t.Error("it has not run 40 s after the outage's end")
		}
		close(release)
	})
}

// isHeld reports whether the consumer's only topic is held.
func isHeld(c *consumertest.Consumer) bool {
	h := c.Health()
	return len(h.Topics) > 0 && h.Topics[0].State == consumer.StateHeld
}
