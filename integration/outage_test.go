package integration_test

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
)

// outage counts what consumers do while each call fails.
type outage struct {
	down               atomic.Bool
	calls, parked, bad atomic.Int64

	mu    sync.Mutex
	moves []string // of the topic
}

func (o *outage) handle(context.Context, *kgo.Record) error {
	o.calls.Add(1)
	if o.down.Load() {
		return classify.As(classify.Retryable(errors.New("connection refused")), "down")
	}
	return nil
}

func (o *outage) OnParked(consumer.Routed)       { o.parked.Add(1) }
func (o *outage) OnDeadLettered(consumer.Routed) { o.bad.Add(1) }

func (o *outage) OnBreaker(e consumer.BreakerChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moves = append(o.moves, e.From+"-"+e.To)
}

// seen returns the transitions so far.
func (o *outage) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.moves)
}

// An outage on real Kafka, with each protocol: the topic is held, probes, and runs when the outage
// ends. A member that joins meanwhile finds that out by itself, and a member leaves in time. No
// record is dead-lettered, and each is handled.
func TestConsumer_OutageDeadLettersNothing(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p protocol) {
		opts := append(shared.Kafka(t).Opts(), kgo.HeartbeatInterval(500*time.Millisecond))
		k := consumertest.On(t, append(opts, p.opts...)...)
		k.Patience = 2 * time.Minute
		o := &outage{}
		topic := topicName(t)
		k.CreateTopic(topic, 4)
		cfg := consumer.Config{
			Group: topic, Topics: []string{topic}, Handler: o.handle, CommitInterval: 100 * time.Millisecond, Hooks: []consumer.Hook{o},
			Policy:       consumer.Policy{Tiers: []time.Duration{time.Second, 2 * time.Second}, MaxAttempts: 8},
			DrainTimeout: 30 * time.Second,
		}
		offer := func(n int) {
			for i := range n {
				k.Produce(&kgo.Record{Topic: topic, Key: fmt.Append(nil, i), Value: []byte("v")})
			}
		}
		until := func(what string, is func() bool) {
			t.Helper()
			for end := time.Now().Add(k.Patience); !is(); {
				if time.Now().After(end) {
					t.Fatalf("%s: not within %v; the topic went %v", what, k.Patience, o.seen())
				}
				<-time.After(50 * time.Millisecond)
			}
		}
		isHeld := func(c *consumertest.Consumer) bool {
			h := c.Health()
			held := slices.IndexFunc(h.Lanes, func(l consumer.LaneHealth) bool { return l.State != consumer.StateHeld }) < 0
			return len(h.Lanes) > 0 && held && len(h.Topics) == 1 && h.Topics[0].State == consumer.StateHeld && h.OK
		}
		first := k.Run(cfg)
		offer(100)
		until("an ordinary start", func() bool { return o.calls.Load() == 100 })
		o.down.Store(true)
		// a topic is held by what fails for five seconds at least
		until("the first member holds its lanes", func() bool { offer(8); return isHeld(first) })
		calls, since := o.calls.Load(), time.Now()
		until("two probes", func() bool { return o.calls.Load() >= calls+2 })
		// Each call that failed before the hold has a copy, which may be written after its begin.
		n, copies := o.calls.Load()-calls, max(o.parked.Load()-(calls-100), 0)
		// The first round comes after a second, and the time to the next one doubles each time.
		if held := time.Since(since); copies != 0 || float64(n) > 20*(1+math.Log2(1+held.Seconds())) {
			t.Errorf("%d calls and %d copies within %v of a hold, want probes alone", n, copies, held)
		}
		second := k.Run(cfg)
		until("the second member holds its lanes", func() bool { offer(8); return isHeld(second) && len(second.Health().Lanes) == 2 })
		began := time.Now()
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > cfg.DrainTimeout/2 { // what it holds, nobody awaits
			t.Errorf("it took %v to stop a member that holds its topic", took)
		}
		until("the second has all lanes", func() bool { return len(second.Health().Lanes) == 4 && isHeld(second) })
		o.down.Store(false)
		until("nothing is held", func() bool {
			return slices.IndexFunc(second.Health().Topics, func(h consumer.TopicHealth) bool { return h.State == consumer.StateHeld }) < 0
		})
		k.Conserved()
		if n := o.bad.Load(); n > 0 {
			t.Errorf("%d healthy records are dead-lettered", n)
		}
		moves := o.seen()
		for _, want := range []string{"closed-strained", "strained-held", "held-strained"} {
			if !slices.Contains(moves, want) {
				t.Errorf("the topic went %v, without %s", moves, want)
			}
		}
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
}
