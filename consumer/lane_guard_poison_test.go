package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// Records that fail for good fill the room of a lane, so no other one can be read and probed. They
// give way after MaxOutage, and no earlier: until then an outage may be what fails.
func TestLane_GuardRoomFullOfPoison(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.MaxInFlight = order, 8
		cfg.Policy.Breaker.MaxOutage = 5 * time.Minute
		cfg.Hooks = []consumer.Hook{routed}
		c := k.Run(cfg)
		poison := func() {
			for range 15 {
				k.Produce(&kgo.Record{Topic: "orders", Key: []byte("key-0"), Value: []byte("bad")})
			}
		}
		holdBy(c, poison)
		since := c.Health().Topics[0].Since
		poison()
		k.Produce(many(20)...)
		parked := routed.parked.Load()
		time.Sleep(time.Until(since.Add(5*time.Minute - time.Second)))
		if n := routed.parked.Load() - parked; n > 0 {
			t.Errorf("%d records went to their tier within MaxOutage", n)
		}
		s.good(t, 20)
		if took := time.Since(since); took > 12*time.Minute {
			t.Errorf("the last healthy record ran %v after the beginning of the hold", took)
		}
		k.Conserved()
	})
}

// An outage ends within a turn of probes: those in front failed a moment before, with an error that
// nothing names, and one behind them succeeds. They run again, in order, and none is dead-lettered.
func TestLane_GuardOutageEndsWithinATurn(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Hooks = []consumer.Hook{routed}
		var held atomic.Bool
		var over bool
		var head int64
		var handled []int64
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			switch facts := consumer.DeliveryOf(ctx, r); {
			case !held.Load(), facts.Tier > 0:
				return s.handle(ctx, r)
			case head == 0:
				head = r.Offset
			case r.Offset > head:
				over = true
			}
			if !over {
				return errBusy
			}
			handled = append(handled, r.Offset)
			return nil
		}
		c := k.Run(cfg)
		s.hold(k, c)
		held.Store(true)
		k.Produce(many(30)...)
		time.Sleep(2 * time.Minute)
		if n := routed.dead.Load(); n > 0 {
			t.Errorf("%d records are dead letters", n)
		}
		if len(handled) < 30 || !slices.IsSorted(handled[1:]) {
			t.Errorf("offsets were handled in the order %v", handled)
		}
		s.down.Store(false)
		time.Sleep(20 * time.Minute)
		k.Conserved()
	})
}

// Among the records that failed as probes, one ends in a letter or a note, and that is not written
// yet. Those around it run again as the outage is over, and do not finish it.
func TestLane_GuardFinishesNoneBetweenFailedProbes(t *testing.T) {
	each(t, map[string]bool{"letter": false, "note": true}, 1, func(t *testing.T, k *consumertest.Kafka, note bool) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.DrainTimeout = 2 * time.Second
		if note {
			cfg.Policy.OnTerminal, cfg.Policy.NoteDiscards = consumer.Discard, true
		}
		var ends atomic.Int64 // the offset of that record, once it is to end
		var over atomic.Bool
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Tier == 0 && r.Offset == ends.Load() {
				over.Store(true)
				return classify.Terminal(errBusy)
			}
			if consumer.DeliveryOf(ctx, r).Tier == 0 && over.Load() {
				return nil
			}
			return s.handle(ctx, r)
		}
		ends.Store(-1)
		c := k.Run(cfg)
		s.hold(k, c)
		time.Sleep(time.Second)
		all := k.Produce(many(30)...)
		time.Sleep(10 * time.Minute)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, Err: kerr.NotEnoughReplicas})
		ends.Store(all[25].Offset)
		for !over.Load() {
			time.Sleep(time.Second)
		}
		time.Sleep(3 * time.Second)
		if at := c.Health().Lanes[0].Offsets[0]; at.Floor > all[25].Offset {
			t.Errorf("the floor is %d, and the copy of %d is not written", at.Floor, all[25].Offset)
		}
		_ = c.Stop() // copies are in flight
		fault.Remove()
		s.down.Store(false)
		k.Run(cfg)
		time.Sleep(20 * time.Minute)
		k.Conserved()
	})
}

// The first record of a partition, or of the only key, fails for good as an outage ends, at once or
// after more than the time from one round of probes to the next. All others failed as probes, and
// no more come. They run soon all the same.
func TestLane_GuardPoisonInFront(t *testing.T) {
	type poison struct {
		order consumer.Order
		err   error
		takes time.Duration
	}
	table := map[string]poison{
		"partition, at once":          {consumer.OrderPartition, classify.Retryable(errBusy), 0},
		"partition, at once, unnamed": {consumer.OrderPartition, errBusy, 0},
	}
	for name, order := range orders {
		table[name+", 16 s"] = poison{order, classify.Retryable(errBusy), 16 * time.Second}
		table[name+", its timeout"] = poison{order, classify.Retryable(errBusy), 2 * time.Hour}
	}
	each(t, table, 1, func(t *testing.T, k *consumertest.Kafka, is poison) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order = is.order
		var held atomic.Bool
		var first, good atomic.Int64 // first is behind the record that is the first probe
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			source := consumer.DeliveryOf(ctx, r).Tier == 0
			if source && held.Load() && (first.CompareAndSwap(0, r.Offset+1) || first.Load() == r.Offset+1) {
				select {
				case <-time.After(is.takes):
				case <-ctx.Done():
				}
				return is.err
			}
			err := s.handle(ctx, r)
			if err == nil && source {
				good.Add(1)
			}
			return err
		}
		c := k.Run(cfg)
		s.down.Store(true)
		produce := func(n int) {
			for range n {
				k.Produce(&kgo.Record{Topic: "orders", Key: []byte("only")})
			}
		}
		holdBy(c, func() { produce(15) })
		held.Store(true)
		produce(60)
		time.Sleep(10 * time.Minute)
		s.down.Store(false)
		within := 4 * time.Minute
		if is.takes == 0 {
			within = 30 * time.Second
		}
		time.Sleep(within)
		if l := c.Health().Lanes[0]; good.Load() < 59 || is.takes == 0 && (l.Offsets[0].Next > l.Offsets[0].Floor || l.State == consumer.StateHeld) {
			t.Errorf("%d of 60 ran within %v of the outage's end; the lane is %+v", good.Load(), within, l)
		}
		if is.takes == 0 {
			k.Conserved()
		}
	})
}

// A redriven record does not run in a hold, and does not keep its key from those of the source
// meanwhile: poison of another key holds the topic until one of these is good.
func TestLane_GuardRedrivenRecordHoldsUpNoKey(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		s := &service{}
		cfg := withBreaker(s)
		cfg.Order = consumer.OrderKey
		var healthy, redriven atomic.Int64
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			err := s.handle(ctx, r)
			switch {
			case err != nil:
			case consumer.DeliveryOf(ctx, r).RedriveID != "":
				redriven.Add(1)
			default:
				healthy.Add(1)
			}
			return err
		}
		c := k.Run(cfg)
		s.down.Store(true)
		holdBy(c, func() {
			for range 15 {
				k.Produce(&kgo.Record{Topic: "orders", Key: []byte("poison"), Value: []byte("bad")})
			}
		})
		time.Sleep(2 * time.Minute)
		m := headers.Meta{
			Group: cfg.Group, NotBefore: time.Now(), Original: headers.Position{Topic: "orders", Offset: 3, Timestamp: time.Now()},
			Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq"}, At: time.Now()},
		}
		k.Produce(&kgo.Record{Topic: "orders.retry.5s", Key: []byte("hot"), Headers: m.Append(nil)})
		time.Sleep(time.Second)
		for range 100 {
			k.Produce(&kgo.Record{Topic: "orders", Key: []byte("hot")})
		}
		time.Sleep(time.Minute)
		s.down.Store(false)
		time.Sleep(time.Minute)
		if healthy.Load() != 100 || redriven.Load() != 1 {
			t.Errorf("%d of 100 and %d redriven ones ran in a minute after the outage's end; %+v", healthy.Load(), redriven.Load(), c.Health().Topics)
		}
	})
}

// An operator pauses the topic in an outage, or the member rejoins: no record is a probe then, and
// the hold goes on.
func TestLane_GuardPauseEndsNoHold(t *testing.T) {
	each(t, cases.Cross(orders, map[string]bool{"pause": true, "rejoin": false}), 1, func(t *testing.T, k *consumertest.Kafka, is cases.Pair[consumer.Order, bool]) {
		s, routed := &service{}, &copies{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Hooks = is.A, []consumer.Hook{routed}
		c := k.Run(cfg)
		s.hold(k, c)
		k.Produce(many(500)...)
		time.Sleep(time.Minute)
		before := routed.parked.Load()
		for range 3 {
			if is.B {
				c.Pause("orders")
				time.Sleep(time.Second)
				calls := s.calls.Load()
				time.Sleep(20 * time.Minute)
				if n := s.calls.Load() - calls; n > 0 {
					t.Errorf("%d probes of a paused topic", n)
				}
				allAre(t, c, consumer.StatePaused)
				c.Resume("orders")
			} else {
				fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, TopLevel: true, Count: -1, Err: kerr.CoordinatorLoadInProgress})
				expel(t, k, 0)
				time.Sleep(40 * time.Second)
				fault.Remove()
			}
			time.Sleep(time.Minute)
		}
		if n := routed.parked.Load() - before; n > 0 {
			t.Errorf("%d records went to their tier in the hold", n)
		}
		s.down.Store(false)
		time.Sleep(30 * time.Second)
		if l := c.Health().Lanes[0]; l.Offsets[0].Next-l.Offsets[0].Floor > 0 || l.State == consumer.StateHeld {
			t.Errorf("the lane is %+v", l)
		}
	})
}

// The first record of each key fails for good as an outage ends, so none that is ready can succeed.
// Those behind it run within half a minute all the same, beside an idle source too, in their order.
func TestLane_GuardPoisonInFrontOfAllKeys(t *testing.T) {
	kinds := map[string]error{"retryable": classify.Retryable(errBusy), "unnamed": errBusy}
	sources := map[string]bool{"idle": false, "flowing": true}
	each(t, cases.Cross(cases.Cross(kinds, sources), map[string]int{"a key": 1, "three keys": 3, "25 keys": 25}), 1, func(t *testing.T, k *consumertest.Kafka, is cases.Pair[cases.Pair[error, bool], int]) {
		s, routed, seen := &service{}, &copies{}, &outcomes{}
		cfg := withBreaker(s)
		cfg.Order, cfg.Hooks = consumer.OrderKey, []consumer.Hook{routed}
		var held atomic.Bool
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			key, facts := string(r.Key), consumer.DeliveryOf(ctx, r)
			if held.Load() && seen.isHead(key, facts.Original.Offset) {
				s.calls.Add(1)
				s.failed.Add(1)
				return is.A.A
			}
			err := s.handle(ctx, r)
			if held.Load() && facts.Attempt == 1 {
				seen.add(key, r.Offset, err == nil)
			}
			return err
		}
		c := k.Run(cfg)
		s.down.Store(true)
		produced := 0
		produce := func(n int) {
			for i := range n * is.B {
				k.Produce(&kgo.Record{Topic: "orders", Key: fmt.Append(nil, i%is.B)})
				produced++
			}
		}
		holdBy(c, func() { produce(5) })
		held.Store(true) // before the first round of probes
		produce(20)
		for range 60 {
			if is.A.B {
				produce(1)
			}
			time.Sleep(10 * time.Second)
		}
		s.down.Store(false)
		time.Sleep(30 * time.Second)
		if is.B > 10 {
			time.Sleep(time.Minute) // a round has ten probes
		}
		if l := c.Health().Lanes[0]; l.Offsets[0].Next-l.Offsets[0].Floor > 0 || l.State == consumer.StateHeld {
			t.Errorf("the lane is %+v", l)
		}
		if n := seen.inverted(); n > 0 || len(seen.heads) != is.B {
			t.Errorf("%d outcomes came after that of a later record of their key, behind %d heads", n, len(seen.heads))
		}
		s.good(t, produced-is.B)
		time.Sleep(2 * time.Hour)
		k.Conserved()
		if n := routed.dead.Load(); n != int64(is.B) {
			t.Errorf("%d records are dead letters, want the %d that fail for good", n, is.B)
		}
	})
}

// outcomes are those of the records of each key, in order, but for the first record of each, its
// head.
type outcomes struct {
	mu    sync.Mutex
	heads map[string]int64
	first map[string][]int64 // each record once, as it ran first
	last  map[string][]int64 // as it succeeded
	ran   map[int64]bool
}

// isHead reports whether the record is the first one of its key that was asked about.
func (o *outcomes) isHead(key string, offset int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.heads == nil {
		o.heads, o.first, o.last, o.ran = map[string]int64{}, map[string][]int64{}, map[string][]int64{}, map[int64]bool{}
	}
	if _, ok := o.heads[key]; !ok {
		o.heads[key] = offset
	}
	return o.heads[key] == offset
}

func (o *outcomes) add(key string, offset int64, good bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ran[offset] {
		o.ran[offset] = true
		o.first[key] = append(o.first[key], offset)
	}
	if good {
		o.last[key] = append(o.last[key], offset)
	}
}

// inverted counts the outcomes that came after that of a later record.
func (o *outcomes) inverted() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, of := range []map[string][]int64{o.first, o.last} {
		for _, offsets := range of {
			for i, offset := range offsets {
				if i > 0 && offset < slices.Max(offsets[:i]) {
					n++
				}
			}
		}
	}
	return n
}
