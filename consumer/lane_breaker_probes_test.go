package consumer_test

import (
	"context"
	"fmt"
	"slices"
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

// A record that fails for good is the first that waits, and it is the first probe. The next probes
// take others, and the record runs when the breaker has closed.
func TestLane_BreakerPoisonInFrontDoesNotHoldItOpen(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed, moves := &service{}, &copies{}, &changes{}
		cfg := withBreaker(s)
		cfg.Order = order
		if order != consumer.OrderPartition {
			cfg.Concurrency = 1 // so that the poison stays in front
		}
		cfg.Hooks = []consumer.Hook{routed, moves}
		k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(100)...)
		time.Sleep(500 * time.Millisecond)
		key := []byte("key-0") // that of each twentieth of the others, too
		bad := k.Produce(&kgo.Record{Topic: "orders", Key: key, Value: []byte("bad")}, &kgo.Record{Topic: "orders", Key: key, Value: []byte("bad too")})
		k.Produce(many(300)...)
		time.Sleep(10 * time.Minute)
		s.down.Store(false)
		time.Sleep(30 * time.Second)
		if got := moves.list(); len(got) < 3 || got[2] != "orders ramp-closed" {
			t.Errorf("the breaker went %v within half a minute", got)
		}
		deadLettered(k, bad, headers.ReasonExhausted)
		k.Conserved()
		if dead := routed.dead.Load(); dead != 2 {
			t.Errorf("%d records are dead letters, want the two that fail for good", dead)
		}
	})
}

// After an outage a few records are left, of which one fails for good, and nothing new comes. The
// breaker closes all the same, and the record ends as it should.
func TestLane_BreakerClosesOverTheLastRecords(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order = order
		cfg.Policy.Breaker.MinRuns = 20
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(20)...)
		time.Sleep(200 * time.Millisecond)
		k.Produce(many(3)...)
		bad := k.Produce(&kgo.Record{Topic: "orders", Key: []byte("key-1"), Value: []byte("bad")})
		k.Produce(many(2)...)
		time.Sleep(time.Second)
		s.down.Store(false)
		deadLettered(k, bad, headers.ReasonExhausted)
		k.Conserved()
		if h := c.Health(); routed.dead.Load() != 1 || len(h.Breakers) > 0 {
			t.Errorf("%d dead letters, and the breakers %+v", routed.dead.Load(), h.Breakers)
		}
	})
}

// A failed probe is no attempt: the record's number stays, its headers are as they were read,
// though the handler had changed them, and nothing is written.
func TestLane_BreakerFailedProbeLeavesItsRecord(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 1
		cfg.Hooks = []consumer.Hook{routed}
		var mu sync.Mutex
		seen := map[int64][]string{} // of the source, by offset
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
			mu.Lock()
			seen[facts.Original.Offset] = append(seen[facts.Original.Offset], fmt.Sprintf("%d %s %s %v %s", facts.Attempt, r.Key, r.Value, r.Headers, facts.RedriveID))
			mu.Unlock()
			r.Key, r.Value = []byte("changed"), nil
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "changed"})
			return s.handle(ctx, r)
		}
		k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(100)...)
		time.Sleep(500 * time.Millisecond)
		parked := routed.parked.Load()
		record := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: redrivenFrom("orders.dlq")}
		record = k.Produce(record)[0]
		time.Sleep(20 * time.Minute)
		if n := routed.parked.Load(); n > parked+1 {
			t.Errorf("%d copies were written while the breaker was open", n-parked)
		}
		s.down.Store(false)
		k.Conserved()
		mu.Lock()
		defer mu.Unlock()
		of := seen[record.Offset]
		if len(of) < 2 || slices.ContainsFunc(of, func(is string) bool { return is != of[0] }) || of[0] != "1 k v [{user [49]}] r1" {
			t.Errorf("the record ran as %q, want the same each time: attempt 1, of run r1", of)
		}
	})
}

// redrivenFrom returns the headers of a letter that was redriven, and one of the user's.
func redrivenFrom(dlq string) []kgo.RecordHeader {
	m := headers.Meta{Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: dlq}, At: time.Now()}}
	return append([]kgo.RecordHeader{{Key: "user", Value: []byte("1")}}, m.AppendSource(nil)...)
}

// A paused topic is not probed.
func TestLane_BreakerPausedIsNotProbed(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s := &service{}
		c := k.Run(withBreaker(s))
		s.down.Store(true)
		k.Produce(many(300)...)
		time.Sleep(time.Second / 2)
		c.Pause("orders")
		time.Sleep(time.Second)
		before := s.calls.Load()
		time.Sleep(10 * time.Minute)
		if n := s.calls.Load() - before; n > 0 {
			t.Errorf("%d probes of a paused topic", n)
		}
		allAre(t, c, consumer.StatePaused)
		c.Resume("orders")
		time.Sleep(5 * time.Minute)
		if n := s.calls.Load() - before; n < 10 || n > 40 {
			t.Errorf("%d probes in five minutes after it", n)
		}
		s.down.Store(false)
		k.Conserved()
	})
}

// The only record of the source fails for good, and the topic's others wait in a retry topic. Each
// probe took the source's, and the breaker stayed open for ever.
func TestLane_BreakerPoisonOfTheSourceDoesNotHideTheTiers(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 1
		cfg.Policy.Breaker.MinRuns = 20
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(20)...)
		time.Sleep(200 * time.Millisecond)
		bad := k.Produce(&kgo.Record{Topic: "orders", Key: []byte("key-1"), Value: []byte("bad")})
		time.Sleep(time.Minute)
		s.down.Store(false)
		deadLettered(k, bad, headers.ReasonExhausted)
		k.Conserved()
		if h := c.Health(); routed.dead.Load() != 1 || len(h.Breakers) > 0 {
			t.Errorf("%d dead letters, and the breakers %+v", routed.dead.Load(), h.Breakers)
		}
	})
}

// What is left is a record that fails for good in the first retry topic, and healthy ones in the
// second. Each probe took the first, and the breaker stayed open for ever.
func TestLane_BreakerPoisonOfATierDoesNotHideTheNext(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &service{fault: func() error { return classify.RetryAfter(errDown, time.Minute) }}
		routed := &copies{}
		cfg := withBreaker(s)
		cfg.Order = order
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{10 * time.Second, time.Minute}, MaxAttempts: 5, Breaker: consumer.Breaker{MinRuns: 21}}
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		bad := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("bad")})
		eventually(t, "it is parked", func() bool { return routed.parked.Load() == 1 })
		s.down.Store(true)
		k.Produce(many(20)...)
		time.Sleep(3 * time.Minute)
		if h := c.Health(); len(h.Breakers) != 1 || routed.parked.Load() != 21 {
			t.Fatalf("%d copies are parked, and the breakers %+v", routed.parked.Load(), h.Breakers)
		}
		s.down.Store(false)
		deadLettered(k, bad, headers.ReasonExhausted)
		k.Conserved()
		if h := c.Health(); routed.dead.Load() != 1 || len(h.Breakers) > 0 {
			t.Errorf("%d dead letters, and the breakers %+v", routed.dead.Load(), h.Breakers)
		}
	})
}

// Two processes died in a row, so that the records in hand run in groups that a commit names. What
// the handler depends on is down meanwhile. No record had been named when a probe was due, so that
// there was none, and the topic stood still for ever.
func TestLane_BreakerProbesSuspects(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]int{"1 partition": 1, "3 partitions": 3}), 4, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[consumer.Order, int]) {
		s, routed, moves := &service{}, &copies{}, &changes{}
		m := newMortal(t, k)
		var records []*kgo.Record
		for p := range tt.B {
			key := keyAmong(p, 4)
			for range 60 {
				records = append(records, k.Produce(&kgo.Record{Topic: "orders", Key: key})...)
			}
		}
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool { return m.deaths < 2 && r.Offset >= 5 }, s.handle))
		cfg.Order = tt.A
		cfg.Policy = consumer.Policy{Breaker: consumer.Breaker{MinRuns: 15}}
		cfg.Hooks = []consumer.Hook{routed, moves}
		var began time.Time
		m.until(cfg, func() bool {
			switch {
			case m.deaths < 2:
			case began.IsZero():
				began = time.Now()
				s.down.Store(true)
				// only failures on a lane without suspects open it
				for range 60 {
					records = append(records, k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(3, 4)})...)
				}
			case time.Since(began) > 5*time.Minute:
				s.down.Store(false)
			}
			return m.missing(records) == 0
		})
		k.Conserved()
		if got := moves.list(); len(got) < 3 || got[0] != "orders closed-open" || got[2] != "orders ramp-closed" {
			t.Errorf("the breaker went %v", got)
		}
		if n := routed.dead.Load(); n > 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// Calls hang while the service is down, and their handlers ignore their deadline. They hold up
// their own records only: the others run a few minutes after its end, though twenty probes hang.
func TestLane_BreakerHangingProbesHoldUpNothing(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 4, func(t *testing.T, k *consumertest.Kafka) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order = consumer.OrderNone
		cfg.Policy.HandlerTimeout = time.Second
		cfg.DrainTimeout = time.Second
		cfg.Hooks = []consumer.Hook{routed}
		var hangs atomic.Bool
		release := make(chan struct{})
		letGo := sync.OnceFunc(func() { close(release) })
		defer letGo()
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if hangs.Load() {
				<-release
				return errDown
			}
			return s.handle(ctx, r)
		}
		k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(300)...)
		time.Sleep(500 * time.Millisecond)
		hangs.Store(true) // each probe
		time.Sleep(20 * time.Minute)
		hangs.Store(false)
		s.down.Store(false)
		began := time.Now()
		good := s.calls.Load()
		for s.calls.Load()-good < 200 {
			if time.Sleep(time.Second); time.Since(began) > 5*time.Minute {
				t.Fatalf("%d records ran within five minutes", s.calls.Load()-good)
			}
		}
		letGo()
		k.Conserved()
	})
}
