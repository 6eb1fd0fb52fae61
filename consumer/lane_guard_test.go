package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// trouble is a situation of a topic: records of tenants come while calls of some of them fail.
type trouble struct {
	order   consumer.Order
	n       int // records that come together
	each    time.Duration
	lasts   time.Duration // from the beginning
	rest    time.Duration // records come for so long after it
	tenants int           // a hundred if zero
	bare    bool          // no retry topics
	fails   func(call) bool
	fault   func(call) error // a retryable one if nil
	judge   func(*testing.T, *seen)
}

// call is a run of the handler.
type call struct {
	tenant, number int // the number of the record's call
	record         int
	at             time.Duration // since the beginning
}

// chance reports whether one of a share of the calls is meant, by record and number.
func (c call) chance(percent uint64) bool {
	x := uint64(c.record)<<20 + uint64(c.number) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x^x>>31)%100 < percent
}

// failing reports whether the calls of a tenant are among a share of them.
func (c call) ofTenant(percent int) bool { return c.tenant < percent }

// seen is what became of the records.
type seen struct {
	trouble
	began time.Time
	all   []*kgo.Record
	c     *consumertest.Consumer

	mu      sync.Mutex
	calls   map[int]int
	ok      map[int]time.Duration // since the record came
	failed  map[int]bool
	parked  map[int]bool
	dead    map[int]bool
	inTurn  map[string][]int // the records handled without a copy, by what keeps an order
	running map[string]bool  // by what keeps an order
	twice   int
	called  int // while it lasts
	moves   []string
	handled time.Duration // the last one of the source, since the beginning
}

func (s *seen) OnBreaker(e consumer.BreakerChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = append(s.moves, e.To)
}

func (s *seen) OnParked(r consumer.Routed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked[numberOf(r.Record)] = true
}

func (s *seen) OnDeadLettered(r consumer.Routed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead[numberOf(r.Record)] = true
}

func (s *seen) OnDiscarded(r consumer.Routed) { s.OnDeadLettered(r) }

func numberOf(r *kgo.Record) (n int) {
	_, _ = fmt.Sscan(string(r.Value), &n)
	return n
}

func (s *seen) handle(_ context.Context, r *kgo.Record) error {
	var tenant int
	_, _ = fmt.Sscanf(string(r.Key), "tenant %d", &tenant)
	n := numberOf(r)
	s.mu.Lock()
	s.calls[n]++
	is := call{tenant: tenant, number: s.calls[n], record: n, at: time.Since(s.began)}
	if is.at < s.lasts {
		s.called++
	}
	of := fmt.Sprint(r.Partition, s.parked[n] || s.order == consumer.OrderNone)
	if s.order == consumer.OrderKey {
		of = string(r.Key)
	}
	alone := s.order == consumer.OrderKey || s.order == consumer.OrderPartition && !s.parked[n]
	if alone && s.running[of] {
		s.twice++
	}
	s.running[of] = true
	s.mu.Unlock()
	time.Sleep(7 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[of] = false
	if is.at < s.lasts && s.fails(is) {
		s.failed[n] = true
		if s.fault != nil {
			return s.fault(is)
		}
		return classify.As(classify.Retryable(errDown), "down")
	}
	s.ok[n] = time.Since(r.Timestamp)
	if !s.parked[n] {
		s.handled = time.Since(s.began)
		if s.order != consumer.OrderNone {
			s.inTurn[of] = append(s.inTurn[of], n)
		}
	}
	return nil
}

// play runs a situation with the default settings, until all records have ended.
func play(t *testing.T, k *consumertest.Kafka, is trouble, change func(*consumer.Config)) *seen {
	s := &seen{
		trouble: is, began: time.Now(), calls: map[int]int{}, ok: map[int]time.Duration{}, failed: map[int]bool{},
		running: map[string]bool{}, parked: map[int]bool{}, dead: map[int]bool{}, inTurn: map[string][]int{},
	}
	cfg := config(s.handle)
	cfg.Policy, cfg.Order, cfg.Concurrency = consumer.Policy{}, is.order, 0
	if is.bare {
		cfg.Policy.Tiers = []time.Duration{}
	}
	quietly(&cfg)
	cfg.Hooks = []consumer.Hook{s}
	if change != nil {
		change(&cfg)
	}
	s.c = k.Run(cfg)
	s.began = time.Now()
	tenants := max(is.tenants, 1)
	if is.tenants == 0 {
		tenants = 100
	}
	for i := 0; time.Since(s.began) < is.lasts+is.rest; time.Sleep(is.each) {
		var some []*kgo.Record
		for range is.n {
			tenant := int(call{record: i, number: 99}.mixed()) % tenants
			some = append(some, &kgo.Record{Topic: "orders", Key: fmt.Appendf(nil, "tenant %d", tenant), Value: fmt.Append(nil, i)})
			i++
		}
		s.all = append(s.all, k.Produce(some...)...)
	}
	for end := time.Now().Add(time.Hour); s.left() > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d records have not ended", s.left(), len(s.all))
		}
	}
	k.Conserved()
	return s
}

// left returns how many records have neither been handled nor dead-lettered.
func (s *seen) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) - len(s.ok) - len(s.dead)
}

func (c call) mixed() uint64 {
	x := uint64(c.record+1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	return (x ^ x>>31) >> 8
}

// worst returns the longest wait of a record none of whose calls failed, of those that came before
// a time, or after it.
func (s *seen) worst(before bool, at time.Duration) (worst time.Duration) {
	for i := range s.all {
		if d, ok := s.ok[i]; ok && !s.failed[i] && s.all[i].Timestamp.Sub(s.began) < at == before {
			worst = max(worst, d)
		}
	}
	return worst
}

// healthyInTime checks that no record whose calls succeed waits longer than half a minute.
func healthyInTime(t *testing.T, s *seen) {
	if worst := s.worst(true, time.Hour); worst > 30*time.Second {
		t.Errorf("a healthy record waited for %v", worst)
	}
}

// healthyAtOnce checks that a strain makes no record later whose calls succeed.
func healthyAtOnce(t *testing.T, s *seen) {
	if worst := s.worst(true, time.Hour); worst > time.Second {
		t.Errorf("a healthy record waited for %v", worst)
	}
}

// lettersAtMost checks how many per thousand of those that failed are dead letters.
func lettersAtMost(perMille int) func(*testing.T, *seen) {
	return func(t *testing.T, s *seen) {
		if n := len(s.dead); 1000*n > perMille*len(s.failed) {
			t.Errorf("%d of %d that failed are dead-lettered", n, len(s.failed))
		}
	}
}

// callsAtMost checks how many calls there were while the trouble lasted, for each hundred records.
func callsAtMost(percent int) func(*testing.T, *seen) {
	return func(t *testing.T, s *seen) {
		n := 0
		for _, r := range s.all {
			if r.Timestamp.Sub(s.began) < s.lasts {
				n++
			}
		}
		if 100*s.called > percent*n+1000 {
			t.Errorf("%d calls for %d records", s.called, n)
		}
	}
}

// backInTime checks that what came until the end was handled soon after it, and all later ones at
// once.
func backInTime(t *testing.T, s *seen) {
	for i, r := range s.all {
		d, ok := s.ok[i]
		if s.parked[i] || s.dead[i] || !ok {
			continue
		}
		if late := r.Timestamp.Sub(s.began) + d - s.lasts; late > 30*time.Second && d > time.Second {
			t.Fatalf("record %d was handled %v after the end of the trouble, and waited %v", i, late, d)
		}
	}
	if got := s.moves; len(got) > 0 && got[len(got)-1] == "held" {
		t.Errorf("the states were %v", got)
	}
}

// inOrder checks that no record which stayed in its source was handled after a later one.
func inOrder(t *testing.T, s *seen) {
	if n := s.overtaking(); n > 0 {
		t.Errorf("%d records were handled before an earlier one", n)
	}
	if s.twice > 0 {
		t.Errorf("two records of a partition or key ran at once, %d times", s.twice)
	}
}

// overtaking returns how many records were handled before an earlier one that stayed in its source.
func (s *seen) overtaking() (n int) {
	for _, all := range s.inTurn {
		first := math.MaxInt
		for _, i := range slices.Backward(all) {
			if i > first {
				n++
			}
			first = min(first, i)
		}
	}
	return n
}

func wasHeld(t *testing.T, s *seen) {
	if !slices.Contains(s.moves, "held") {
		t.Errorf("the states were %v, want the topic held", s.moves)
	}
}

func wasStrained(t *testing.T, s *seen) {
	if !slices.Equal(s.moves[:min(1, len(s.moves))], []string{"strained"}) || slices.Contains(s.moves, "held") {
		t.Errorf("the states were %v, want the topic strained only", s.moves)
	}
}

func and(all ...func(*testing.T, *seen)) func(*testing.T, *seen) {
	return func(t *testing.T, s *seen) {
		for _, judge := range all {
			judge(t, s)
		}
	}
}

// unnamed is an error that no rule names: it is terminal.
func unnamed(call) error { return errors.New("no such column") }

// Trap 36: an outage sends healthy records to the dead-letter topic. Beside it the situations in
// which five trials saw records wait, or die, for the faults of others, with the default settings.
func TestLane_GuardInTrouble(t *testing.T) {
	cases.Skip(t)
	always := func(call) bool { return true }
	each(t, map[string]trouble{
		"1 an outage, one partition": {
			n: 4, each: 2 * time.Second, lasts: 10 * time.Minute, rest: 30 * time.Second, fails: always,
			judge: and(wasHeld, inOrder, backInTime, lettersAtMost(0)),
		},
		"1 an outage, one key": {
			order: consumer.OrderKey, tenants: 1, n: 4, each: 2 * time.Second, lasts: 10 * time.Minute, rest: 30 * time.Second, fails: always,
			judge: and(wasHeld, inOrder, backInTime, lettersAtMost(0)),
		},
		"2 half of the tenants": {
			n: 2, each: time.Second / 5, lasts: time.Minute, fails: func(c call) bool { return c.ofTenant(60) },
			judge: and(wasStrained, healthyAtOnce, lettersAtMost(5)),
		},
		"3 most for good, then all": {
			n: 5, each: time.Second / 2, lasts: 100 * time.Second, rest: time.Minute,
			fails: func(c call) bool { return c.at > 80*time.Second || c.record%10 < 8 },
			fault: func(c call) error {
				if c.record%10 < 8 {
					return unnamed(c)
				}
				return classify.Retryable(errDown)
			},
			judge: and(healthyInTime, backInTime),
		},
		"4 half for good, in bursts": {
			order: consumer.OrderNone, n: 400, each: 12 * time.Second, lasts: 2 * time.Minute,
			fails: func(c call) bool { return c.record%2 == 0 }, fault: unnamed,
			judge: and(healthyInTime, backInTime),
		},
		"5 an outage": {
			n: 10, each: time.Second / 2, lasts: 5 * time.Minute, rest: 30 * time.Second, fails: always,
			judge: and(wasHeld, inOrder, backInTime, callsAtMost(9), lettersAtMost(0)),
		},
		"7 three in five by chance": {
			n: 10, each: time.Second / 2, lasts: time.Minute, fails: func(c call) bool { return c.chance(60) },
			judge: and(wasStrained, healthyAtOnce, callsAtMost(125), lettersAtMost(5)),
		},
		"8 flaps": {
			n: 10, each: time.Second / 2, lasts: time.Minute, fails: func(c call) bool { return c.at%(6*time.Second) < 3*time.Second },
			judge: and(wasStrained, callsAtMost(125), lettersAtMost(5)),
		},
		"9 no retry topics": {
			bare: true, n: 10, each: time.Second / 2, lasts: time.Minute, rest: time.Minute, fails: always,
			judge: and(wasHeld, inOrder, backInTime, func(t *testing.T, s *seen) {
				if n := len(s.dead); n < 120 || n > 160 {
					t.Errorf("%d letters, want those that hold the topic, and what ran", n)
				}
			}),
		},
		"10 a bad deployment": {
			n: 10, each: time.Second / 2, lasts: 2 * time.Minute, rest: 30 * time.Second,
			fails: func(c call) bool { return call{record: c.record}.chance(99) }, fault: unnamed,
			judge: and(wasHeld, inOrder, backInTime),
		},
	}, 4, func(t *testing.T, k *consumertest.Kafka, tt trouble) {
		s := play(t, k, tt, nil)
		tt.judge(t, s)
		t.Logf("%d records, %d calls in the trouble, %d failed, %d parked, %d dead; worst wait %v; %v",
			len(s.all), s.called, len(s.failed), len(s.parked), len(s.dead), s.worst(true, time.Hour), s.moves)
		stop(t, s.c)
	})
}

// Through a strain and a hold, what fails for good is discarded: each of these records has its
// note, no other one has, and the others run in their order.
func TestLane_GuardNotesDiscards(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		forGood := func(c call) bool { return c.record%3 == 0 }
		s := play(t, k, trouble{
			n: 10, each: time.Second / 2, lasts: 40 * time.Second,
			fails: func(c call) bool {
				return forGood(c) || c.at < 10*time.Second && c.chance(30) || c.at > 10*time.Second && c.at < 25*time.Second
			},
			fault: func(c call) error {
				if forGood(c) {
					return unnamed(c)
				}
				return classify.Retryable(errDown)
			},
		}, func(cfg *consumer.Config) { cfg.Policy.OnTerminal, cfg.Policy.NoteDiscards = consumer.Discard, true })
		wasHeld(t, s)
		if n := s.overtaking(); n > 1 { // the probe that ends the hold
			t.Errorf("%d records were handled before an earlier one, want 1 at most", n)
		}
		var want []string
		for i := range s.dead {
			at := fmt.Sprint(s.all[i].Partition, "/", s.all[i].Offset)
			if want = append(want, fmt.Sprintf("billing orders/%s, %s unclassified 1", at, at)); i%3 != 0 {
				t.Errorf("record %d is discarded", i)
			}
		}
		if slices.Sort(want); len(want) < 200 || !slices.Equal(discardNotes(t, k), want) {
			t.Errorf("%d notes of %d discarded records", len(discardNotes(t, k)), len(want))
		}
		holds(t, k, "orders.dlq", 0)
	})
}

// Records of a tier that left the configuration wait for the end of a hold. Those that fail in the
// strain behind it go to a tier of the configuration, and it is no attempt.
func TestLane_GuardHoldsDrainedTiers(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		s, routed := &service{}, &copies{}
		s.down.Store(true)
		cfg := withBreaker(s)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		old := k.Produce(many(10)...)
		runsUntilParked(t, k, cfg, time.Minute, old...)
		cfg.Policy = consumer.Policy{Tiers: []time.Duration{5 * time.Second, 30 * time.Second}, MaxAttempts: 2}
		cfg.Hooks = []consumer.Hook{routed}
		var drained atomic.Int64
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if err := s.handle(ctx, r); consumer.DeliveryOf(ctx, r).Tier != time.Minute {
				return err
			}
			drained.Add(1)
			return classify.Retryable(errBusy)
		}
		c := k.Run(cfg)
		s.hold(k, c)
		time.Sleep(10 * time.Minute)
		if n := drained.Load(); n > 0 {
			t.Errorf("%d records of the drained tier ran in the hold", n)
		}
		s.down.Store(false)
		handledOnce(k, old)
		k.Conserved()
		if a, b := drained.Load(), routed.dead.Load(); a != 10 || b > 0 || endOf(k, "orders.retry.1m") != 10 {
			t.Errorf("%d of 10 records of the drained tier ran, and %d are dead letters", a, b)
		}
	})
}
