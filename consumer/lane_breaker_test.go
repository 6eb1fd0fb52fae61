package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// Trap 36: an outage sends healthy records to the dead-letter topic. Ten minutes in which every
// call fails: none is dead-lettered, the tiers get no more than the formula says, the service no
// more calls than in ten ordinary minutes, and half a minute after its end the topic is at its
// speed.
func TestLane_BreakerOutageDeadLettersNothing(t *testing.T) {
	cases.Skip(t)
	const minutes = 10 * time.Minute
	type row struct {
		n       int // records
		each    time.Duration
		order   consumer.Order
		off     bool
		minRuns int64 // of the formula
	}
	each(t, map[string]row{
		"one a second":             {n: 1, each: time.Second, minRuns: 100},
		"one a second, by key":     {n: 1, each: time.Second, order: consumer.OrderKey, minRuns: 100},
		"one a second, none":       {n: 1, each: time.Second, order: consumer.OrderNone, minRuns: 100},
		"forty a second":           {n: 20, each: 500 * time.Millisecond, minRuns: 400},
		"forty a second, by key":   {n: 20, each: 500 * time.Millisecond, order: consumer.OrderKey, minRuns: 400},
		"six hundred at the start": {n: 600, each: minutes, minRuns: 600},
		"without a breaker":        {n: 1, each: time.Second, off: true},
	}, 4, func(t *testing.T, k *consumertest.Kafka, tt row) {
		s, routed, moves := &service{}, &copies{}, &changes{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = tt.order, 0
		cfg.Policy.Breaker.Off = tt.off
		cfg.Hooks = []consumer.Hook{routed, moves}
		c := k.Run(cfg)
		records := steadily(k, tt.n, min(tt.each, time.Second), time.Second) // an ordinary second
		time.Sleep(time.Minute)
		before := s.calls.Load()
		s.down.Store(true)
		records = append(records, steadily(k, tt.n, tt.each, minutes)...)
		calls, parked := s.calls.Load()-before, routed.parked.Load()
		if tt.off {
			s.down.Store(false)
			k.Conserved()
			if dead := routed.dead.Load(); dead < 200 || calls < 3*600 {
				t.Errorf("%d of 600 are dead-lettered without a breaker, after %d calls; want 252 or so, and thrice the calls", dead, calls)
			}
			return
		}
		var held int
		for _, l := range c.Health().Lanes {
			if l.State == consumer.StateHeld {
				held++
			}
		}
		if h := c.Health(); held != 4 || !h.OK || len(h.Breakers) != 1 {
			t.Errorf("%d of 4 lanes are held, health is %+v", held, h)
		}
		ended := time.Now()
		s.down.Store(false)
		if tt.each < minutes { // the ordinary load goes on
			records = append(records, steadily(k, tt.n, tt.each, 30*time.Second)...)
		} else {
			time.Sleep(30 * time.Second)
		}
		// The source has caught up, and its records run as they come.
		late := 0
		for _, l := range c.Health().Lanes {
			late += l.Queued
		}
		if late > tt.n {
			t.Errorf("%d records wait %v after the outage", late, time.Since(ended))
		}
		if got := moves.list(); !slices.Equal(got, []string{"orders closed-open", "orders open-ramp", "orders ramp-closed"}) {
			t.Errorf("the breaker went %v, want open, ramp, closed", got)
		}
		k.Conserved()
		eventually(t, "all are handled", func() bool {
			return s.calls.Load()-s.failed.Load() == int64(len(records))
		})
		const running = 64
		if limit := tt.minRuns + running; parked > limit {
			t.Errorf("%d copies are parked, want %d at most", parked, limit)
		}
		if dead := routed.dead.Load(); dead > 0 {
			t.Errorf("%d of %d healthy records are dead-lettered", dead, len(records))
		}
		if ordinary := int64(len(records)); 10*calls > 12*ordinary {
			t.Errorf("%d calls while the service was down, of %d ordinarily", calls, ordinary)
		}
		t.Logf("%v: %d records, %d calls while down, %d parked", tt, len(records), calls, parked)
		stop(t, c)
	})
}

// A bad deployment that panics, or fails with errors that nobody has named, opens the breaker. The
// topic is not emptied into the dead-letter topic, and the next deployment handles it.
func TestLane_BreakerBadDeployKeepsTheRecords(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]func() error{
		"panic":      func() error { panic("nil map") },
		"by default": func() error { return errors.New("no such column") },
	}), 4, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, func() error]) {
		s, routed := &service{fault: c.B}, &copies{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Order = c.A
		cfg.Hooks = []consumer.Hook{routed}
		bad := k.Run(cfg)
		records := k.Produce(many(2000)...)
		time.Sleep(time.Hour)
		dead := routed.dead.Load()
		if dead < 90 || dead > 100+64 {
			t.Errorf("%d of 2000 are dead-lettered, want the 100 that open the breaker, and what ran", dead)
		}
		stop(t, bad)
		s.down.Store(false)
		k.Run(cfg)
		k.Conserved()
		eventually(t, "the others are handled", func() bool { return s.calls.Load()-s.failed.Load() == int64(len(records))-dead })
	})
}

// What the handler itself called terminal or discarded is no outage.
func TestLane_BreakerNamedFailuresDoNotOpenIt(t *testing.T) {
	each(t, map[string]func(error) error{"terminal": classify.Terminal, "discard": classify.Discard}, 2, func(t *testing.T, k *consumertest.Kafka, name func(error) error) {
		s := &service{fault: func() error { return name(errBusy) }}
		s.down.Store(true)
		moves := &changes{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{moves}
		k.Run(cfg)
		k.Produce(many(1000)...)
		k.Conserved()
		eventually(t, "all ran", func() bool { return s.calls.Load() == 1000 })
		if got := moves.list(); len(got) > 0 {
			t.Errorf("the breaker went %v", got)
		}
	})
}

// A partition full of records that fail opens nothing while others succeed.
func TestLane_BreakerOnePoisonPartitionOpensNothing(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 4, func(t *testing.T, k *consumertest.Kafka) {
		s, moves := &service{takes: time.Millisecond}, &changes{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{moves}
		k.Run(cfg)
		for range 20 {
			for p := range 4 {
				value := "fine"
				if p == 0 {
					value = "bad"
				}
				for range 25 {
					k.Produce(&kgo.Record{Topic: "orders", Key: keyAmong(p, 4), Value: []byte(value)})
				}
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		k.Conserved()
		eventually(t, "the bad ones have run to their end", func() bool { return s.failed.Load() == 4*500 })
		if got := moves.list(); len(got) > 0 {
			t.Errorf("the breaker went %v", got)
		}
	})
}

// The breaker of a topic holds no other topic.
func TestLane_BreakerTopicsAreIndependent(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 2)
		s, moves := &service{}, &changes{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Topics = []string{"orders", "bills"}
		cfg.Hooks = []consumer.Hook{moves}
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if r.Topic == "bills" {
				return nil
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		k.Produce(many(200)...)
		time.Sleep(5 * time.Second)
		var bills []*kgo.Record
		for i := range 200 {
			bills = append(bills, k.Produce(&kgo.Record{Topic: "bills", Key: fmt.Append(nil, i)})...)
		}
		began := time.Now()
		handledOnce(k, bills)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the other topic took %v", took)
		}
		if laneOf(t, c, "orders", 0).State != consumer.StateHeld || laneOf(t, c, "bills", 0).State == consumer.StateHeld {
			t.Errorf("the lanes are %+v", c.Health().Lanes)
		}
		s.down.Store(false)
		k.Conserved()
	})
}

// No two records of a partition, or of a key, run at once: not before an outage, in it, and after
// it. Source records run first in their order.
func TestLane_BreakerKeepsTheOrder(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]consumer.Order{"partition": consumer.OrderPartition, "key": consumer.OrderKey}, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s := &service{takes: 3 * time.Millisecond}
		cfg := withBreaker(s)
		cfg.Order = order
		cfg.Handler = s.alone(func(d consumer.Delivery, r *kgo.Record) string {
			if order == consumer.OrderKey {
				return fmt.Sprint(r.Partition, string(r.Key))
			}
			return fmt.Sprint(d.Physical.Topic, d.Physical.Partition)
		})
		k.Run(cfg)
		for range 4 {
			k.Produce(many(200)...)
			s.down.Store(true)
			k.Produce(many(400)...)
			time.Sleep(time.Minute)
			k.Produce(many(200)...)
			s.down.Store(false)
			time.Sleep(time.Minute)
		}
		k.Conserved()
		if s.twice > 0 {
			t.Errorf("%d times two records ran at once", s.twice)
		}
	})
}

// An open breaker delays no revoke and no end of Run. A lane that is assigned while it is open is
// held at once, and the other member's is on its own.
func TestLane_BreakerRevokesAndEndsWhileOpen(t *testing.T) {
	cases.Skip(t)
	each(t, balancers, 4, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		s, log := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Kafka = append(cfg.Kafka, opts...)
		cfg.Hooks = []consumer.Hook{log}
		first := k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(1000)...)
		time.Sleep(30 * time.Second)
		second := k.Run(cfg)
		time.Sleep(2 * time.Minute)
		if a, b := len(first.Health().Lanes), len(second.Health().Lanes); a != 2 || b != 2 {
			t.Fatalf("the members have %d and %d lanes", a, b)
		}
		before := s.calls.Load()
		began := time.Now()
		stop(t, second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Run took %v to end", took)
		}
		eventually(t, "the lanes are back", func() bool { return len(first.Health().Lanes) == 4 })
		k.Produce(many(200)...)
		time.Sleep(time.Minute)
		allAre(t, first, consumer.StateHeld)
		if n := s.calls.Load() - before; n > 20 {
			t.Errorf("%d calls after the lanes came back, want probes only", n)
		}
		if n := log.parked.Load(); n > 2*(100+64) {
			t.Errorf("%d copies are parked, want those that opened two breakers", n)
		}
		s.down.Store(false)
		k.Conserved()
		if n := log.dead.Load(); n > 0 {
			t.Errorf("%d dead letters", n)
		}
		stop(t, first)
	})
}

// MaxAge does not count the time of an outage: a record that failed before it, and fails once more
// after it, is tried again. One that fails for good expires.
func TestLane_BreakerMaxAgeRests(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Policy.MaxAge = 2 * time.Minute
		cfg.Hooks = []consumer.Hook{routed}
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "thrice" && consumer.DeliveryOf(ctx, r).Attempt < 3 {
				return classify.Retryable(errBusy)
			}
			return s.handle(ctx, r)
		}
		k.Run(cfg)
		thrice := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("thrice")})[0]
		eventually(t, "it failed once", func() bool { return routed.parked.Load() == 1 })
		s.down.Store(true)
		k.Produce(many(300)...)
		time.Sleep(time.Second)
		bad := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("bad")})
		time.Sleep(time.Hour)
		s.down.Store(false)
		k.Handled(thrice, 1)
		deadLettered(k, bad, headers.ReasonExpired)
		k.Conserved()
		if n := routed.dead.Load(); n != 1 {
			t.Errorf("%d dead letters, want the one that fails for good", n)
		}
	})
}

// Retries in place end when the breaker opens, with the record back in its place. Each run counts.
func TestLane_BreakerEndsRetriesInPlace(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 4, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 0
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 9, Base: 100 * time.Millisecond, Max: 100 * time.Millisecond}
		cfg.Hooks = []consumer.Hook{routed}
		k.Run(cfg)
		s.down.Store(true)
		records := k.Produce(many(300)...)
		time.Sleep(10 * time.Minute)
		if n := s.calls.Load(); n > 100+64+50 {
			t.Errorf("%d calls, want those that open the breaker, what ran, and probes", n)
		}
		s.down.Store(false)
		k.Conserved()
		eventually(t, "all are handled", func() bool { return s.calls.Load()-s.failed.Load() == int64(len(records)) })
		if n := routed.parked.Load(); n > 100 {
			t.Errorf("%d copies were parked", n)
		}
	})
}

// The log, the hook and health tell what opened a breaker, that it stays open, and how long it was.
func TestLane_BreakerTells(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s, moves := &service{}, &changes{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{moves}
		log := logged(&cfg)
		c := k.Run(cfg)
		s.down.Store(true)
		k.Produce(many(300)...)
		time.Sleep(3 * time.Minute)
		h := c.Health()
		want := "100 % of 100 runs failed, the last with class down"
		if len(h.Breakers) != 1 || h.Breakers[0].Topic != "orders" || h.Breakers[0].State != "open" || h.Breakers[0].Why != want ||
			h.Breakers[0].Probes < 10 || time.Until(h.Breakers[0].NextProbe) > 15*time.Second || time.Until(h.Breakers[0].NextProbe) < 0 {
			t.Errorf("health has the breakers %+v", h.Breakers)
		}
		if l := laneOf(t, c, "orders", 0); l.State != consumer.StateHeld || l.Why != "held by the breaker of its topic: "+want {
			t.Errorf("the lane is %+v", l)
		}
		log.has(t, 1, "level=WARN", "the breaker of a topic opened", "topic=orders", `why="`+want+`"`, "class=down", "connection refused")
		if n := log.with("level=WARN", "the breaker of a topic is open", "state=open", "class=down"); n < 2 || n > 3 {
			t.Errorf("%d lines tell within three minutes that it is open", n)
		}
		s.down.Store(false)
		k.Conserved()
		time.Sleep(time.Minute)
		log.has(t, 1, "level=INFO", "the breaker of a topic closed", "topic=orders", "lasted=3m", "probes=")
		stop(t, c)
		if got := moves.list(); !slices.Equal(got, []string{"orders closed-open", "orders open-ramp", "orders ramp-closed"}) {
			t.Errorf("the hook saw %v", got)
		}
		if e := moves.of[2]; e.Why != want || e.Probes < 20 || e.At.Sub(e.Since) < 3*time.Minute {
			t.Errorf("the last change is %+v", e)
		}
	})
}
