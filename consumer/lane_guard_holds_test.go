package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	"github.com/sidingkafka/siding/internal/commitmark"
)

// The log, the hook and health say that a topic is strained or held, since when, why, how many
// records wait, and what can be done. Health stays OK.
func TestLane_GuardTells(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s, moves := &service{}, &changes{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{moves}
		log := logged(&cfg)
		c := k.Run(cfg)
		began := time.Now()
		s.hold(k, c)
		k.Produce(many(50)...)
		time.Sleep(3 * time.Minute)
		h := c.Health()
		if !h.OK || len(h.Topics) != 1 {
			t.Fatalf("health is %+v", h)
		}
		is := h.Topics[0]
		if is.Topic != "orders" || is.State != consumer.StateHeld || is.Since.Sub(began) > 10*time.Second || is.Share != 1 || is.Runs < 120 ||
			is.Class != "down" || is.LastError != "connection refused" || is.Waiting < 50 || is.Probes < 80 || is.Do == "" ||
			time.Until(is.NextProbe) > 15*time.Second || time.Until(is.NextProbe) < 0 {
			t.Errorf("the topic is %+v", is)
		}
		if l := laneOf(t, c, "orders", 0); l.State != consumer.StateHeld || !strings.HasPrefix(l.Why, "held, but for probes: 100 % of ") || l.Since != is.Since {
			t.Errorf("the lane is %+v", l)
		}
		if m := markOf(k, 0); m.State != commitmark.Held || m.Class != "down" || m.Since.Unix() != is.Since.Unix() {
			t.Errorf("the commit says %+v", m)
		}
		log.has(t, 1, "level=WARN", "a topic is strained;", "topic=orders", "class=down", "connection refused")
		log.has(t, 1, "level=WARN", "a topic is held;", "topic=orders", `why="100 % of `, "class=down", "connection refused")
		if n := log.with("level=WARN", `"siding: a topic is strained or held"`, "state=held", "share=1", "class=down", "waiting=", "do="); n < 2 || n > 3 {
			t.Errorf("%d lines say within three minutes that it is held", n)
		}
		s.down.Store(false)
		time.Sleep(20 * time.Second)
		log.has(t, 1, "level=INFO", "a topic is held no more", "topic=orders", "lasted=3m")
		k.Produce(many(100)...)
		time.Sleep(20 * time.Second)
		k.Produce(many(100)...)
		k.Conserved()
		log.has(t, 1, "level=INFO", "a topic is strained no more", "topic=orders")
		if h := c.Health(); len(h.Topics) > 0 {
			t.Errorf("at the end, health has %+v", h.Topics)
		}
		if m := markOf(k, 0); m.State != 0 {
			t.Errorf("at the end, the commit says %+v", m)
		}
		s.hold(k, c)
		stop(t, c)
		if m := markOf(k, 0); m.State != 0 {
			t.Errorf("of a process that has ended, the commit says %+v", m)
		}
		moves.of = moves.of[:4]
		if got := moves.list(); !slices.Equal(got, []string{"orders closed-strained", "orders strained-held", "orders held-strained", "orders strained-closed"}) {
			t.Errorf("the hook saw %v", got)
		}
		if e := moves.of[2]; e.Probes < 80 || e.At.Sub(e.Since) < 3*time.Minute || e.Since.IsZero() {
			t.Errorf("the end of the hold is reported as %+v", e)
		}
	})
}

// markOf returns what the last commit of a partition says of its topic's guard.
func markOf(k *consumertest.Kafka, partition int32) commitmark.Guard {
	said := k.Cluster.GroupInfo("billing").Commits["orders"][partition]
	return commitmark.ParseGuard(said.Metadata, said.Offset)
}

// A partition without records says in its commits that its topic is held, and no longer than that
// is true.
func TestLane_GuardMarksIdlePartitions(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s := &service{}
		k.Run(withBreaker(s))
		const idle = 0
		run := func(down bool, until commitmark.State) {
			t.Helper()
			s.down.Store(down)
			eventually(t, fmt.Sprintf("the idle partition's commit says %q", until), func() bool {
				for range 10 {
					k.Produce(&kgo.Record{Topic: "orders", Partition: 1})
				}
				return markOf(k, idle).State == until
			})
		}
		run(true, commitmark.Held)
		run(false, 0)
	})
}

// What the handler itself called terminal or discarded is an answer, and another topic's trouble is
// none of a topic.
func TestLane_GuardHoldsNoOther(t *testing.T) {
	each(t, map[string]func(error) error{"terminal": classify.Terminal, "discard": classify.Discard}, 2, func(t *testing.T, k *consumertest.Kafka, name func(error) error) {
		k.CreateTopic("bills", 2)
		s, moves := &service{}, &changes{}
		cfg := withBreaker(s)
		cfg.Topics, cfg.Hooks = []string{"orders", "bills"}, []consumer.Hook{moves}
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if r.Topic == "bills" {
				s.calls.Add(1)
				return name(errBusy)
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		s.hold(k, c)
		before := s.calls.Load()
		for i := range 300 {
			k.Produce(&kgo.Record{Topic: "bills", Key: fmt.Append(nil, i)})
		}
		eventually(t, "the other topic's run", func() bool { return s.calls.Load() >= before+300 })
		if laneOf(t, c, "orders", 0).State != consumer.StateHeld || laneOf(t, c, "bills", 0).State != consumer.StateRunning {
			t.Errorf("the lanes are %+v", c.Health().Lanes)
		}
		s.down.Store(false)
		k.Conserved()
		if got := moves.list(); strings.Contains(fmt.Sprint(got), "bills") {
			t.Errorf("the topics went %v", got)
		}
	})
}

// A hold delays no revoke and no end of Run. A lane that another member gets in it goes on with the
// first record that failed as a probe, so its records run in their order.
func TestLane_GuardRevokesAndEndsInAHold(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(balancers, map[string]consumer.Order{"partition": consumer.OrderPartition, "key": consumer.OrderKey}), 4, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[[]kgo.Opt, consumer.Order]) {
		s, log := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Kafka, cfg.Hooks = c.B, append(cfg.Kafka, c.A...), []consumer.Hook{log}
		var mu sync.Mutex
		last, inverted := map[string]int64{}, 0
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			err := s.handle(ctx, r)
			if is := consumer.DeliveryOf(ctx, r); err == nil && is.Attempt == 1 {
				mu.Lock()
				defer mu.Unlock()
				of := fmt.Sprint(r.Partition)
				if c.B == consumer.OrderKey {
					of = string(r.Key)
				}
				if r.Offset < last[of] {
					inverted++
				}
				last[of] = r.Offset
			}
			return err
		}
		first := k.Run(cfg)
		records := s.hold(k, first)
		time.Sleep(20 * time.Second)
		second := k.Run(cfg)
		for range 30 { // it has a guard of its own
			records = append(records, k.Produce(many(20)...)...)
			time.Sleep(time.Second)
		}
		if a, b := len(first.Health().Lanes), len(second.Health().Lanes); a != 2 || b != 2 {
			t.Fatalf("the members have %d and %d lanes", a, b)
		}
		began := time.Now()
		stop(t, second)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Run took %v to end", took)
		}
		eventually(t, "the lanes are back", func() bool { return len(first.Health().Lanes) == 4 })
		allAre(t, first, consumer.StateHeld)
		s.down.Store(false)
		s.good(t, len(records))
		k.Conserved()
		if n := log.dead.Load(); n > 0 || inverted > 0 {
			t.Errorf("%d dead letters, and %d records after a later one", n, inverted)
		}
	})
}

// MaxAge does not count the time of a hold, and goes on in a strain.
func TestLane_GuardMaxAgeRests(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Policy.MaxAge = 2 * time.Minute
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		bad := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("bad")})
		records := s.hold(k, c)
		k.Produce(many(20)...)
		time.Sleep(10 * time.Minute)
		s.down.Store(false)
		s.good(t, len(records)+20)
		deadLettered(k, bad, headers.ReasonExpired)
		k.Conserved()
		if n := routed.dead.Load(); n != 1 {
			t.Errorf("%d dead letters of %d, want the one that fails for good", n, len(records)+21)
		}
	})
}

// Retries in place end when the topic is held, with the record back in its place, and cost the
// budget in a strain. So the calls are few all the same.
func TestLane_GuardEndsRetriesInPlace(t *testing.T) {
	each(t, orders, 4, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Concurrency = order, 0
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 9, Base: 100 * time.Millisecond, Max: 100 * time.Millisecond}
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		records := s.hold(k, c)
		records = append(records, k.Produce(many(100)...)...)
		before := s.calls.Load()
		time.Sleep(5 * time.Minute)
		if n := s.calls.Load() - before; n > 4*20+10*20+64 {
			t.Errorf("%d calls in the hold, want probes alone", n)
		}
		s.down.Store(false)
		s.good(t, len(records))
		k.Conserved()
		if n := routed.dead.Load(); n > 0 {
			t.Errorf("%d dead letters", n)
		}
	})
}

// A failed probe changes nothing of its record, whatever its handler did to it.
type changed struct{}

func TestLane_GuardFailedProbeStaysAsRead(t *testing.T) {
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
			seen[facts.Original.Offset] = append(seen[facts.Original.Offset], fmt.Sprintf("%d %s %s %v %s %v", facts.Attempt, r.Key, r.Value, r.Headers, facts.RedriveID, ctx.Value(changed{})))
			mu.Unlock()
			r.Key, r.Value, r.Context = []byte("changed"), nil, context.WithValue(ctx, changed{}, true)
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "changed"})
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		records := s.hold(k, c)
		time.Sleep(time.Second / 2)
		parked := routed.parked.Load()
		record := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: redrivenFrom("orders.dlq")}
		record = k.Produce(record)[0]
		time.Sleep(5 * time.Minute)
		if n := routed.parked.Load(); n > parked {
			t.Errorf("%d copies were written in the hold", n-parked)
		}
		s.down.Store(false)
		s.good(t, len(records)+1)
		mu.Lock()
		defer mu.Unlock()
		of := seen[record.Offset]
		if len(of) < 2 || slices.ContainsFunc(of, func(is string) bool { return is != of[0] }) || of[0] != "1 k v [{user [49]}] r1 <nil>" {
			t.Errorf("the record ran as %q, want the same each time: attempt 1, of run r1", of)
		}
	})
}

// redrivenFrom returns the headers of a letter that was redriven, and one of the user's.
func redrivenFrom(dlq string) []kgo.RecordHeader {
	m := headers.Meta{Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: dlq}, At: time.Now()}}
	return append([]kgo.RecordHeader{{Key: "user", Value: []byte("1")}}, m.AppendSource(nil)...)
}

// No failure stops a lane while the topic is strained, though the policy says that the last attempt
// does: it is none. A wait that a handler asks for is kept.
func TestLane_GuardStopsNoLaneInAStrain(t *testing.T) {
	each(t, orders, 4, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		asked := map[int]time.Time{}
		early := 0
		s := play(t, k, trouble{
			order: order, n: 10, each: time.Second / 2, lasts: time.Minute,
			fails: func(c call) bool {
				if at, ok := asked[c.record]; ok && time.Now().Before(at) {
					early++
				}
				return c.at > 5*time.Second && c.chance(50)
			},
			fault: func(c call) error {
				asked[c.record] = time.Now().Add(20 * time.Second)
				return classify.RetryAfter(errDown, 20*time.Second)
			},
		}, func(cfg *consumer.Config) {
			cfg.Policy.OnExhausted, cfg.Policy.MaxAttempts = consumer.Stop, 3
		})
		wasStrained(t, s)
		healthyAtOnce(t, s)
		if early > 0 {
			t.Errorf("%d retries came before the handler wanted them", early)
		}
		for _, l := range s.c.Health().Lanes {
			if l.State == consumer.StateStopped {
				t.Errorf("the lane is %+v", l)
			}
		}
	})
}

// Retries that wait for the budget claim no key: source records and redriven ones run beside them.
func TestLane_GuardBudgetHoldsNoOtherRecordOfTheKey(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const n = 300
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
			}
			return s.handle(ctx, r)
		}
		c := k.Run(cfg)
		key := func(i int) []byte { return fmt.Append(nil, "customer ", i) }
		for i := range n {
			k.Produce(&kgo.Record{Topic: "orders", Key: key(i), Value: []byte("bad")})
		}
		time.Sleep(11 * time.Second)
		if l := c.Health().Lanes[0]; l.Queued < n/2 || l.Why == "" || retried.Load() < 10 {
			t.Fatalf("%d retries ran, and the lane is %+v; want the budget used up", retried.Load(), l)
		}
		for i := range n {
			k.Produce(&kgo.Record{Topic: "orders", Key: key(i), Value: []byte("live")})
		}
		for i := range 100 {
			m := headers.Meta{
				Group: cfg.Group, NotBefore: time.Now(), Original: headers.Position{Topic: "orders", Offset: int64(i), Timestamp: time.Now()},
				Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: time.Now()},
			}
			k.Produce(&kgo.Record{Topic: "orders.retry.10s", Key: key(200 + i), Value: []byte("live"), Headers: m.Append(nil)})
		}
		time.Sleep(2 * time.Second)
		if a, b := source.Load(), redriven.Load(); a != n || b != 100 {
			t.Errorf("%d of %d source records and %d of 100 redriven ones ran beside the retries of their keys that wait", a, n, b)
		}
	})
}
