package consumer_test

import (
	"bytes"
	"context"
	"errors"
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
)

// service is what a handler depends on. It counts the calls, and may be down.
type service struct {
	down   atomic.Bool
	fault  func() error // of a call while it is down
	takes  time.Duration
	calls  atomic.Int64
	failed atomic.Int64

	mu      sync.Mutex
	running map[string]int // by what may not run twice at once
	twice   int
	first   []int64 // offsets of source records, in the order in which they ran first
	seen    map[string]bool
}

var errDown = errors.New("connection refused")

// handle calls the service. A record whose value begins with "bad" fails always.
func (s *service) handle(ctx context.Context, r *kgo.Record) error {
	s.calls.Add(1)
	if s.takes > 0 {
		time.Sleep(s.takes)
	}
	if bytes.HasPrefix(r.Value, []byte("bad")) {
		s.failed.Add(1)
		return classify.As(classify.Retryable(errors.New("no such customer")), "poison")
	}
	if s.down.Load() {
		s.failed.Add(1)
		if s.fault != nil {
			return s.fault()
		}
		return classify.As(classify.Retryable(errDown), "down")
	}
	return nil
}

// alone makes a handler note when two records run at once that may not.
func (s *service) alone(of func(consumer.Delivery, *kgo.Record) string) consumer.Handler {
	s.running, s.seen = map[string]int{}, map[string]bool{}
	return func(ctx context.Context, r *kgo.Record) error {
		what := of(consumer.DeliveryOf(ctx, r), r)
		s.mu.Lock()
		if s.running[what]++; s.running[what] > 1 {
			s.twice++
		}
		if at := fmt.Sprint(r.Partition, "/", r.Offset); !s.seen[at] {
			s.seen[at] = true
			s.first = append(s.first, r.Offset)
		}
		s.mu.Unlock()
		err := s.handle(ctx, r)
		s.mu.Lock()
		s.running[what]--
		s.mu.Unlock()
		return err
	}
}

// copies counts the copies of a consumer's records.
type copies struct{ parked, dead atomic.Int64 }

func (c *copies) OnParked(consumer.Routed)       { c.parked.Add(1) }
func (c *copies) OnDeadLettered(consumer.Routed) { c.dead.Add(1) }

// changes are the transitions of breakers.
type changes struct {
	mu sync.Mutex
	of []consumer.BreakerChange
}

func (h *changes) OnBreaker(e consumer.BreakerChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = append(h.of, e)
}

func (h *changes) list() (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.of {
		all = append(all, e.Topic+" "+e.From+"-"+e.To)
	}
	return all
}

// withBreaker is a configuration with the default policy.
func withBreaker(s *service) consumer.Config {
	cfg := config(s.handle)
	cfg.Policy = consumer.Policy{}
	quietly(&cfg)
	cfg.Kafka = append(cfg.Kafka, kgo.FetchMaxWait(time.Second))
	return cfg
}

// steadily produces n records in each interval, for a time.
func steadily(k *consumertest.Kafka, n int, each, during time.Duration) (all []*kgo.Record) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(each) {
		all = append(all, k.Produce(many(n)...)...)
	}
	return all
}

// Trap 36: an outage sends healthy records to the dead-letter topic. Ten minutes in which every
// call fails: none is dead-lettered, the tiers get no more than the formula says, the service no
// more calls than in ten ordinary minutes, and half a minute after its end the topic is at its
// speed.
func TestLane_BreakerOutageDeadLettersNothing(t *testing.T) {
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
	each(t, cross(orders, map[string]func() error{
		"panic":      func() error { panic("nil map") },
		"by default": func() error { return errors.New("no such column") },
	}), 4, func(t *testing.T, k *consumertest.Kafka, c pair[consumer.Order, func() error]) {
		s, routed := &service{fault: c.b}, &copies{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Order = c.a
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

// A record that fails for good is the first that waits, and it is the first probe. The next probes
// take others, and the record runs when the breaker has closed.
func TestLane_BreakerPoisonInFrontDoesNotHoldItOpen(t *testing.T) {
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

// No two records of a partition, or of a key, run at once: not before an outage, in it, and after
// it. Source records run first in their order.
func TestLane_BreakerKeepsTheOrder(t *testing.T) {
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

// MaxAge does not count the time of an outage: a record that failed before it, and fails once more
// after it, is tried again. One that fails for good expires.
func TestLane_BreakerMaxAgeRests(t *testing.T) {
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

// Retries that fail again are a fifth of all runs at most, or a hundred in ten seconds. Those that
// succeed are not slowed down, and the source is not.
func TestLane_BreakerBudgetHoldsRetriesThatFailAgain(t *testing.T) {
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
	each(t, cross(orders, map[string]int{"1 partition": 1, "3 partitions": 3}), 4, func(t *testing.T, k *consumertest.Kafka, tt pair[consumer.Order, int]) {
		s, routed, moves := &service{}, &copies{}, &changes{}
		m := newMortal(t, k)
		var records []*kgo.Record
		for p := range tt.b {
			key := keyAmong(p, 4)
			for range 60 {
				records = append(records, k.Produce(&kgo.Record{Topic: "orders", Key: key})...)
			}
		}
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool { return m.deaths < 2 && r.Offset >= 5 }, s.handle))
		cfg.Order = tt.a
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

// Half of the retries succeed, and the source is idle. A retry that ended well made room in the
// budget, but nobody took the next ones: they waited until a record came.
func TestLane_BreakerBudgetRunsAllRetriesWithoutTheSource(t *testing.T) {
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
