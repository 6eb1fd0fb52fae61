package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// hookCalls records the calls of the hooks for one kind of event.
type hookCalls struct {
	mu sync.Mutex
	of []consumer.Routed
	do func(consumer.Routed)
}

func (h *hookCalls) add(e consumer.Routed) {
	if h.do != nil {
		h.do(e)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = append(h.of, e)
}

func (h *hookCalls) all() []consumer.Routed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.of)
}

type (
	letters  struct{ hookCalls }
	parked   struct{ hookCalls }
	discards struct{ hookCalls }
)

func (h *letters) OnDeadLettered(e consumer.Routed) { h.add(e) }
func (h *parked) OnParked(e consumer.Routed)        { h.add(e) }
func (h *discards) OnDiscarded(e consumer.Routed)   { h.add(e) }

// states records the states that a lane enters.
type states struct {
	mu sync.Mutex
	of []consumer.LaneChange
}

func (h *states) OnLaneState(e consumer.LaneChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of = append(h.of, e)
}

// changes returns the state changes of a partition, as "from>to".
func (h *states) changes(partition int32) (all []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.of {
		if e.Partition == partition {
			all = append(all, fmt.Sprintf("%s>%s", e.From, e.To))
		}
	}
	return all
}

// A hook is called for a dead letter when it is safe, and before the record is committed.
func TestHookDeadLettered_IsCalledBeforeTheCommit(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var c *consumertest.Consumer
		hook := &letters{}
		hook.do = func(e consumer.Routed) {
			time.Sleep(time.Second) // ten times the interval of the commits
			if at := k.Cluster.PartitionInfo("orders.dlq", 1); at.HighWatermark != 1 {
				t.Errorf("the dead-letter topic ends at %d when the hook is called, want 1", at.HighWatermark)
			}
			if floor := c.Health().Lanes[1].Offsets[0].Floor; floor != 0 {
				t.Errorf("the floor is %d while the hook runs, want 0", floor)
			}
			if got := k.Cluster.GroupInfo("billing").Commits["orders"][1].Offset; got != 0 {
				t.Errorf("%d is committed while the hook runs, want 0", got)
			}
		}
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			r.Value, r.Topic = []byte("changed"), "nowhere"
			return classify.As(errors.New("card 4111 is unknown"), "card.unknown")
		})
		cfg.Hooks = []consumer.Hook{hook}
		cfg.ErrorText = func(error) string { return "card **** is unknown" }
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: 3, Err: kerr.TopicAuthorizationFailed})
		c = k.Run(cfg)
		r := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Key: []byte{}, Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "mine", Value: []byte("1")}}})[0]
		hits(t, fault, 3)
		if n := len(hook.all()); n != 0 {
			t.Errorf("the hook was called for %d refused copies", n)
		}
		letter := k.DeadLettered(r, headers.ReasonTerminal)
		eventually(t, "it is committed", func() bool { return k.Cluster.GroupInfo("billing").Commits["orders"][1].Offset == 1 })
		got := hook.all()
		if len(got) != 1 {
			t.Fatalf("the hook was called for %d dead letters, want 1", len(got))
		}
		e := got[0]
		if at := e.At; at.Topic != "orders.dlq" || at.Partition != 1 || at.Offset != 0 || at.Timestamp.IsZero() {
			t.Errorf("the event has the copy at %v, written %v", at, at.Timestamp)
		}
		if e.Meta.Reason != headers.ReasonTerminal || e.Meta.Class != "card.unknown" || e.Meta.Message != "card **** is unknown" || fmt.Sprint(e.Meta) != fmt.Sprint(letter) {
			t.Errorf("the event has %+v, the letter %+v", e.Meta, letter)
		}
		if o := e.Record; o.Topic != "orders" || o.Partition != 1 || o.Offset != r.Offset || o.Key == nil || len(o.Key) > 0 || string(o.Value) != "x" ||
			o.Timestamp.UnixMilli() != r.Timestamp.UnixMilli() || len(o.Headers) != 1 || o.Headers[0].Key != "mine" {
			t.Errorf("the event has record %+v, want it as it was read", o)
		}
		if e.Tier != 0 {
			t.Errorf("a dead letter in tier %v", e.Tier)
		}
		k.Conserved()
	})
}

// A hook is called for each copy that was written to a tier.
func TestHookParked_IsCalledForEachCopy(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		hook := &parked{}
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 2 {
				return classify.RetryAfter(errBusy, 50*time.Minute)
			}
			return classify.Retryable(errBusy)
		})
		cfg.Hooks = []consumer.Hook{hook}
		// half of it is shorter than the wait that is asked for
		cfg.Provision.TierRetention = 65 * time.Minute
		k.Run(cfg)
		r := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("x")})[0]
		last := k.DeadLettered(r, headers.ReasonExhausted)
		got := hook.all()
		if len(got) != last.Hops-1 || len(got) < 3 {
			t.Fatalf("called for %d copies, want all but the last of %d, the hops of a long wait included", len(got), last.Hops)
		}
		for i, e := range got {
			tier, topic, attempts := tier2, "orders.retry.900ms", 2
			if i == 0 {
				tier, topic, attempts = tier1, "orders.retry.300ms", 1
			}
			if e.Tier != tier || e.At.Topic != topic || e.At.Partition != 1 || e.At.Offset != int64(max(i-1, 0)) || e.Meta.Attempts != attempts ||
				e.Meta.Reason != "" || e.Meta.NotBefore.Before(e.Meta.FailedAt.Add(tier)) || e.Record.Topic != "orders" || e.Record.Offset != r.Offset {
				t.Errorf("copy %d: tier %v, at %v, %+v, of %s/%d", i, e.Tier, e.At, e.Meta, e.Record.Topic, e.Record.Offset)
			}
		}
		k.Conserved()
	})
}

// A hook gets a broken record of a tier with its position in the tier, since its headers cannot be
// trusted.
func TestHookDeadLettered_BrokenRecordWhereItWasFound(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		hook := &letters{}
		cfg := config(handle)
		cfg.Hooks = []consumer.Hook{hook}
		k.Run(cfg)
		k.Produce(&kgo.Record{Topic: "orders.retry.300ms", Partition: 1, Value: []byte("x"), Headers: []kgo.RecordHeader{
			{Key: headers.OriginalTopic, Value: []byte("payments")}, {Key: headers.Attempts, Value: []byte("-1")}, {Key: "mine", Value: nil},
		}})
		eventually(t, "the hook is called", func() bool { return len(hook.all()) == 1 })
		e := hook.all()[0]
		if e.Record.Topic != "orders.retry.300ms" || e.Record.Partition != 1 || e.Record.Offset != 0 || string(e.Record.Value) != "x" || len(e.Record.Headers) != 1 ||
			e.Meta.Reason != headers.ReasonMalformed || e.Meta.Class != headers.ClassMalformed || !strings.Contains(e.Meta.Message, headers.Attempts) || e.At.Topic != "orders.dlq" {
			t.Errorf("called with %+v, %+v, at %v", e.Record, e.Meta, e.At)
		}
	})
}

// A hook is called for each record that is discarded.
func TestHookDiscarded_IsCalledForEachRecord(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		hook := &discards{}
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			switch string(r.Value) {
			case "by word":
				return classify.Discard(errBusy)
			case "by policy":
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Policy.OnExhausted = consumer.Discard
		cfg.Hooks = []consumer.Hook{hook}
		k.Run(cfg)
		records := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("by word")}, &kgo.Record{Topic: "orders", Partition: 1, Value: []byte("by policy")})
		eventually(t, "the hook is called for both", func() bool { return len(hook.all()) == 2 })
		for i, want := range []headers.Reason{headers.ReasonTerminal, headers.ReasonExhausted} {
			e := hook.all()[i]
			if e.Meta.Reason != want || e.At != (headers.Position{}) || e.Tier != 0 || string(e.Record.Value) != string(records[i].Value) ||
				e.Record.Topic != "orders" || e.Record.Offset != records[i].Offset || e.Record.Timestamp.IsZero() {
				t.Errorf("called with %+v, reason %q, at %v; want %s by %s", e.Record, e.Meta.Reason, e.At, records[i].Value, want)
			}
		}
	})
}

// angry panics at everything.
type angry struct{}

func (angry) OnDeadLettered(consumer.Routed)  { panic("the pager is down") }
func (angry) OnParked(consumer.Routed)        { panic("the pager is down") }
func (angry) OnDiscarded(consumer.Routed)     { panic("the pager is down") }
func (angry) OnLaneState(consumer.LaneChange) { panic("the pager is down") }

// A hook that panics stops nothing, and the log has its panic.
func TestHook_PanicIsLoggedAndStopsNothing(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		behind, seen := &letters{}, &states{}
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Offset%3 == 0 {
				return classify.Discard(errBusy)
			}
			return classify.Retryable(errBusy)
		})
		log := logged(&cfg)
		cfg.Hooks = []consumer.Hook{angry{}, behind, seen}
		c := k.Run(cfg)
		dead := 0
		for _, r := range k.Produce(many(60)...) {
			if r.Offset%3 != 0 {
				k.DeadLettered(r, headers.ReasonExhausted)
				dead++
			}
		}
		time.Sleep(time.Second)
		stop(t, c)
		if got := len(behind.all()); got != dead {
			t.Errorf("the hook behind the one that panics was called for %d dead letters, want %d", got, dead)
		}
		if len(seen.changes(1)) == 0 {
			t.Error("the hook behind the one that panics was called for no state")
		}
		for _, name := range []string{"OnDeadLettered", "OnParked", "OnDiscarded", "OnLaneState"} {
			if n := log.with("hook=" + name + " error=\"panic: the pager is down\""); n == 0 || n > 3 {
				t.Errorf("the panic of %s is in the log %d times, want it once in ten seconds", name, n)
			}
		}
	})
}

// leaky panics with what it saw.
type leaky struct{}

func (leaky) OnDeadLettered(e consumer.Routed) {
	panic("the hook saw card " + string(e.Record.Value))
}

// The text of a hook's panic may have parts of the record, as that of a handler's may.
func TestHook_PanicIsShownThroughErrorText(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(func(context.Context, *kgo.Record) error { return classify.Terminal(errBusy) })
		cfg.ErrorText = func(err error) string { return strings.ReplaceAll(err.Error(), "4111111111111111", "****") }
		cfg.Hooks = []consumer.Hook{leaky{}}
		log := logged(&cfg)
		c := k.Run(cfg)
		k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Value: []byte("4111111111111111")})[0], headers.ReasonTerminal)
		stop(t, c)
		log.has(t, 1, "a hook panicked", "the hook saw card ****", "leaky.OnDeadLettered")
		log.has(t, 0, "4111111111111111")
	})
}

// A hook is called for a lane's states, from its assignment to its end.
func TestHookLaneState_FromAssignmentToEnd(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		hook := &states{}
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			switch v := string(r.Value); {
			case v == "poison":
				return errors.New("no such SKU")
			case v == "busy" && consumer.DeliveryOf(ctx, r).Attempt == 1:
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		cfg.Hooks = []consumer.Hook{hook}
		c := k.Run(cfg)
		time.Sleep(time.Second)
		busy := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("busy")})[0]
		k.Handled(busy, 1)
		time.Sleep(time.Second)
		// No handler runs while the lane is blocked, so the clock of the handlers does not do the
		// checks.
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.TopicAuthorizationFailed})
		poison := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("poison")})[0]
		time.Sleep(time.Minute)
		fault.Remove()
		k.DeadLettered(poison, headers.ReasonTerminal)
		time.Sleep(time.Second)
		c.Pause("orders")
		time.Sleep(time.Second)
		stop(t, c)
		if got, want := hook.changes(1), []string{">running", "running>waiting", "waiting>running", "running>blocked", "blocked>running", "running>paused", "paused>"}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
		if got, want := hook.changes(0), []string{">running", "running>paused", "paused>"}; !slices.Equal(got, want) {
			t.Errorf("the changes of the other lane are %q, want %q", got, want)
		}
		for _, e := range hook.of {
			if e.To == consumer.StateBlocked && (!strings.Contains(e.Why, "orders.dlq") || e.Since.IsZero()) || e.Topic != "orders" {
				t.Errorf("called with %+v", e)
			}
		}
	})
}

// A partition that is assigned again gets another lane, which begins without a state.
func TestHookLaneState_ReturningPartitionIsANewLane(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		hook := &states{}
		cfg := config(handle)
		cfg.Hooks = []consumer.Hook{hook}
		// The member is expelled, and back before the next check.
		c := k.Run(cfg)
		time.Sleep(10 * time.Second)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Count: 1, Err: kerr.UnknownMemberID})
		hits(t, fault, 1)
		// No check comes at the moment of the end: it may see the lane drain.
		time.Sleep(10*time.Second + 100*time.Millisecond)
		stop(t, c)
		if got, want := hook.changes(0), []string{">running", "running>", ">running", "running>"}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
	})
}
