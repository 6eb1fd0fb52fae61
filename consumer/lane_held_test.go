package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// keeping are the orders under which keys can be held.
var keeping = map[string]consumer.Order{"partition": consumer.OrderPartition, "key": consumer.OrderKey}

// holdsKeys is a configuration under which failed records hold their keys.
func holdsKeys(order consumer.Order, h consumer.Handler) consumer.Config {
	cfg := config(h)
	cfg.Order, cfg.HoldKeys = order, true
	return cfg
}

// heldOutcomes are what became of records, in order.
type heldOutcomes struct {
	ran
	mu  sync.Mutex
	of  []string // "key value: what"
	bad []string // what ran too early
	all []heldOutcome
}

type heldOutcome struct {
	key    string
	offset int64
	at     time.Time
}

func (o *heldOutcomes) add(r *kgo.Record, what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.of = append(o.of, fmt.Sprintf("%s %s: %s", r.Key, r.Value, what))
	if what == "handled" || what == "dead" || what == "discarded" {
		o.all = append(o.all, heldOutcome{string(r.Key), r.Offset, time.Now()})
	}
}

func (o *heldOutcomes) OnDeadLettered(e consumer.Routed) { o.add(e.Record, "dead") }

func (o *heldOutcomes) OnDiscarded(e consumer.Routed) { o.add(e.Record, "discarded") }

func (o *heldOutcomes) OnParked(e consumer.Routed) {
	o.add(e.Record, fmt.Sprintf("parked %v after %d", e.Tier, e.Meta.Attempts))
}

func (o *heldOutcomes) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.of)
}

// handler fails a record as often as its value says, and then does what that says.
func (o *heldOutcomes) handler(ctx context.Context, r *kgo.Record) error {
	var fails int
	var end string
	if _, err := fmt.Sscanf(string(r.Value), "%d times, then %s", &fails, &end); err != nil {
		end = "good"
	}
	o.ran.count(r)
	switch d := consumer.DeliveryOf(ctx, r); {
	case time.Now().UnixMilli() < d.NotBefore.UnixMilli():
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bad = append(o.bad, fmt.Sprintf("%s/%d/%d is early by %v", r.Topic, r.Partition, r.Offset, time.Until(d.NotBefore)))
		return errBusy
	case o.ran.times(r) <= fails:
		return classify.As(classify.Retryable(errBusy), "busy")
	case end == "bad":
		return classify.As(errors.New("no such SKU"), "unknown-sku")
	case end == "gone":
		return classify.Discard(errBusy)
	}
	o.add(r, "handled")
	return nil
}

func keyed(key, value string) *kgo.Record {
	return &kgo.Record{Topic: "orders", Partition: 0, Key: []byte(key), Value: []byte(value)}
}

// A record that fails keeps its key: later records of the key wait behind it, in order, and others
// run. It runs again when it would be due in its tier, and leaves no copy.
func TestHeldLane_KeepsAKeyInOrder(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		o := &heldOutcomes{}
		cfg := holdsKeys(order, o.handler)
		cfg.Policy.Jitter = -1
		cfg.Hooks = []consumer.Hook{o}
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(keyed("a", "2 times, then good"), keyed("a", "second"), keyed("b", "other"), keyed("a", "0 times, then gone"),
			&kgo.Record{Topic: "orders", Value: []byte("null")}, keyed("a", "0 times, then bad"), keyed("", "1 times, then good"), keyed("a", "last"), keyed("", "empty"))
		time.Sleep(tier1 - time.Millisecond)
		want := []string{"a 2 times, then good: parked 300ms after 1", "b other: handled", " null: handled", " 1 times, then good: parked 300ms after 1"}
		got := o.list()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("at first %q, want %q", got, want)
		}
		l := laneOf(t, c, "orders", 0)
		if l.Held != 7 || l.Queued != 0 || l.Offsets[0].Floor != 0 || l.Offsets[0].Pending != 7 {
			t.Errorf("the lane is %+v, want 7 records held", l)
		}
		time.Sleep(tier1 + tier2)
		want = []string{"a 2 times, then good: parked 900ms after 2", "a 2 times, then good: handled", "a second: handled", "a 0 times, then gone: discarded", "a 0 times, then bad: dead", "a last: handled"}
		got = slices.DeleteFunc(o.list(), func(s string) bool { return !strings.HasPrefix(s, "a ") })[1:]
		if !slices.Equal(got, want) {
			t.Errorf("of key a %q, want %q", got, want)
		}
		if got = slices.DeleteFunc(o.list(), func(s string) bool { return !strings.HasPrefix(s, " ") }); !slices.Contains(got, " empty: handled") {
			t.Errorf("of the empty key %q", got)
		}
		holds(t, k, "orders.retry.300ms", 0)
		holds(t, k, "orders.retry.900ms", 0)
		k.Conserved()
		committed(t, k, "orders", 0, 9)
		log.has(t, 1, "level=INFO", "record waits in its partition, and so do later ones of its key", "offset=0", "tier=300ms", "class=busy")
		if l := laneOf(t, c, "orders", 0); l.Held != 0 || l.State != consumer.StateRunning {
			t.Errorf("at the end the lane is %+v", l)
		}
	})
}

// Random histories of processes that die, hand over, share the partitions and meet outages: each
// record ends, the first outcomes of a key's records come in their order, and so do the last ones.
func TestHeldLane_KeepsTheOrderWhateverHappens(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) { playHeld(t, k, seed) })
		})
	}
}

func playHeld(t *testing.T, k *consumertest.Kafka, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	o, m := &heldOutcomes{}, newMortal(t, k)
	var down sync.Map
	h := m.handler(func(context.Context, *kgo.Record) bool { return false }, func(ctx context.Context, r *kgo.Record) error {
		time.Sleep(time.Duration(7*r.Offset%20) * time.Millisecond)
		if _, is := down.Load("down"); is {
			return classify.As(classify.Retryable(errDown), "down")
		}
		if m.dead.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		return o.handler(ctx, r)
	})
	cfg := holdsKeys([]consumer.Order{consumer.OrderPartition, consumer.OrderKey}[seed%2], h)
	cfg.Policy.Tiers, cfg.Policy.MaxAttempts = []time.Duration{300 * time.Millisecond, 5 * time.Second}, 4
	cfg.Followers = consumer.Followers(seed / 2 % 2)
	cfg.Policy.Breaker.Off, cfg.Policy.RetryBudget.Off = seed%3 == 0, seed%5 == 0
	cfg.Policy.NoteDiscards = seed%7 == 0
	cfg.Policy.Immediate.Attempts = int(seed % 4 / 3)
	cfg.MaxHeld = []int{10_000, 10}[seed/3%2]
	cfg.DrainTimeout = time.Second
	cfg.Kafka = append(cfg.Kafka, []kgo.Opt{nil, kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer()}[1+seed%2])
	cfg.Hooks = []consumer.Hook{&liveOnly{o, m}}
	var records []*kgo.Record
	running := []*consumertest.Consumer{k.Run(cfg)}
	died := false
	for range 12 {
		var some []*kgo.Record
		for range rnd.IntN(40) {
			key := rnd.IntN(6)
			some = append(some, &kgo.Record{Topic: "orders", Key: keysAmong(rnd.IntN(2), 2, 6)[key], Value: fmt.Appendf(nil, "%d times, then %s", max(0, rnd.IntN(8)-3), []string{"good", "good", "good", "bad", "gone"}[rnd.IntN(5)])})
		}
		if len(some) > 0 {
			records = append(records, k.Produce(some...)...)
		}
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
		switch rnd.IntN(6) {
		case 0: // all die
			died = true
			m.dead.Store(true)
			for _, c := range running {
				stopStuck(t, c)
			}
			time.Sleep(2 * time.Minute)
			m.dead.Store(false)
			running = []*consumertest.Consumer{k.Run(cfg)}
		case 1: // hands over
			stop(t, running[0])
			running = append(running[1:], k.Run(cfg))
		case 2: // another member
			running = append(running, k.Run(cfg))
		case 3:
			down.Store("down", true)
			time.Sleep(time.Duration(rnd.IntN(60)) * time.Second)
			down.Delete("down")
		}
	}
	for end := time.Now().Add(2 * time.Hour); lagOf(k) > 0; time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("after two hours %d records have not ended; the lanes are %+v", lagOf(k), running[0].Health().Lanes)
		}
	}
	// After a death a record with a letter may run again, and end well.
	if !died && cfg.Followers == consumer.ReleaseFollowers {
		k.Conserved()
	}
	for _, c := range running {
		stop(t, c)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.bad) > 0 {
		t.Error(o.bad)
	}
	first, last := map[string]map[int64]int{}, map[string]map[int64]int{}
	for i, x := range o.all {
		if first[x.key] == nil {
			first[x.key], last[x.key] = map[int64]int{}, map[int64]int{}
		}
		if _, had := first[x.key][x.offset]; !had {
			first[x.key][x.offset] = i
		}
		last[x.key][x.offset] = i
	}
	for _, r := range records {
		if _, ok := first[string(r.Key)][r.Offset]; !ok {
			t.Errorf("%s/%d, key %q, %q has no outcome", r.Topic, r.Offset, r.Key, r.Value)
		}
	}
	for key, of := range first {
		for offset, at := range of {
			for later, then := range of {
				if offset < later && (at > then || last[key][offset] > last[key][later]) {
					t.Fatalf("key %q: %d had its first outcome as number %d and its last as %d, %d as %d and %d", key, offset, at, last[key][offset], later, then, last[key][later])
				}
			}
		}
	}
}

// lagOf returns how many offsets of the source are not committed.
func lagOf(k *consumertest.Kafka) (n int64) {
	for p := range int32(2) {
		n += k.Cluster.PartitionInfo("orders", p).HighWatermark
		if g := k.Cluster.GroupInfo("billing"); g != nil {
			n -= g.Commits["orders"][p].Offset
		}
	}
	return n
}

// liveOnly passes on the outcomes of processes that live.
type liveOnly struct {
	o *heldOutcomes
	m *mortal
}

func (l *liveOnly) OnDeadLettered(e consumer.Routed) {
	if !l.m.dead.Load() {
		l.o.OnDeadLettered(e)
	}
}

func (l *liveOnly) OnDiscarded(e consumer.Routed) {
	if !l.m.dead.Load() {
		l.o.OnDiscarded(e)
	}
}

// The records read so far behind a dead letter follow it: in order, with its class and fingerprint,
// unrun. Later ones run.
func TestHeldLane_FollowersFollowTheirHead(t *testing.T) {
	each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		o := &heldOutcomes{}
		cfg := holdsKeys(order, o.handler)
		cfg.Followers, cfg.Hooks = consumer.FollowHead, []consumer.Hook{o}
		k.Run(cfg)
		records := k.Produce(keyed("a", "1 times, then bad"), keyed("a", "second"), keyed("b", "other"), keyed("a", "third"))
		head := k.DeadLettered(records[0], headers.ReasonTerminal)
		for _, r := range []*kgo.Record{records[1], records[3]} {
			m := k.DeadLettered(r, headers.ReasonHeld)
			if m.Class != head.Class || m.Fingerprint != head.Fingerprint || m.Attempts != 0 || m.Message == "" {
				t.Errorf("the letter of a follower says %+v", m)
			}
		}
		k.Handled(k.Produce(keyed("a", "later"))[0], 1)
		k.Handled(records[2], 1)
		committed(t, k, "orders", 0, 5)
		got := slices.DeleteFunc(o.list(), func(s string) bool { return !strings.HasSuffix(s, ": dead") })
		if want := []string{"a 1 times, then bad: dead", "a second: dead", "a third: dead"}; !slices.Equal(got, want) {
			t.Errorf("the letters are %q, want %q", got, want)
		}
		k.Conserved()
	})
}

// A letter that has to be shrunk, or that brokers refuse for a while, comes before those of the
// records behind it. Else one of these would have an outcome before its head, which after a crash
// may be another one.
func TestHeldLane_LettersComeInOrder(t *testing.T) {
	for name, large := range map[string]int{"the head is too large": 0, "a follower is": 1} {
		t.Run(name, func(t *testing.T) {
			each(t, keeping, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
				const limited = 8 << 10
				makeSiblings(t, k, 1<<20, limited)
				o := &heldOutcomes{}
				cfg := holdsKeys(order, o.handler)
				cfg.Followers, cfg.Hooks = consumer.FollowHead, []consumer.Hook{o}
				k.Run(cfg)
				records := []*kgo.Record{keyed("a", "1 times, then bad"), keyed("a", "second"), keyed("a", "third"), keyed("a", "fourth")}
				random := make([]byte, 2*limited)
				rand.NewChaCha8([32]byte{}).Read(random)
				records[large].Value = append(append(records[large].Value, ' '), random...)
				k.Produce(records...)
				time.Sleep(time.Minute)
				var got []int64
				for _, r := range content(t, k, "orders.dlq") {
					m, err := headers.Parse(r.Headers)
					if err != nil {
						t.Error(err)
					}
					got = append(got, m.Original.Offset)
				}
				if want := []int64{0, 1, 2, 3}; !slices.Equal(got, want) {
					t.Errorf("the letters are of the records %v, want %v", got, want)
				}
				committed(t, k, "orders", 0, 4)
			})
		})
	}
}

// Followers that may have killed a process go to the DLQ behind their head, unrun. So does one that
// did.
func TestHeldLane_FollowersMayBeSuspects(t *testing.T) {
	suspects := offsets.Evidence{Process: 1, Deaths: 2, Suspect: 9}
	condemned, singly, alone := suspects, suspects, suspects
	condemned.Condemned = []offsets.Alone{{Offset: 7}}
	singly.Singly = []offsets.Span{{First: 5, Last: 8}}
	alone.Alone = &offsets.Alone{Offset: 7}
	for name, e := range map[string]offsets.Evidence{"in groups": suspects, "one by one": singly, "one condemned": condemned, "one ran alone": alone} {
		t.Run(name, func(t *testing.T) {
			each(t, keeping, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
				records := k.Produce(append(many(5), keyed("a", "0 times, then bad"), keyed("a", "second"), keyed("a", "third"), keyed("a", "fourth"), keyed("b", "other"))...)
				commitSaid(t, k, "billing", 0, offsets.Metadata{Evidence: e})
				o := &heldOutcomes{}
				cfg := holdsKeys(order, o.handler)
				cfg.Followers = consumer.FollowHead
				k.Run(cfg)
				time.Sleep(time.Minute)
				committed(t, k, "orders", 0, 10)
				k.DeadLettered(records[5], headers.ReasonTerminal)
				for _, r := range records[6:9] {
					k.DeadLettered(r, headers.ReasonHeld)
				}
			})
		})
	}
}
