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
	moves []string // of breakers
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

// The breaker on real Kafka, with each protocol: it opens, probes, and closes when the outage ends.
// A member that joins meanwhile has its own, which costs a hundred attempts, and a member leaves in
// time. No record is dead-lettered, and each is handled.
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
					t.Fatalf("%s: not within %v; the breakers went %v", what, k.Patience, o.seen())
				}
				<-time.After(50 * time.Millisecond)
			}
		}
		isHeld := func(c *consumertest.Consumer) bool {
			h := c.Health()
			held := slices.IndexFunc(h.Lanes, func(l consumer.LaneHealth) bool { return l.State != consumer.StateHeld }) < 0
			return len(h.Lanes) > 0 && held && len(h.Breakers) == 1 && h.OK
		}
		first := k.Run(cfg)
		offer(100)
		until("an ordinary start", func() bool { return o.calls.Load() == 100 })
		o.down.Store(true)
		offer(600)
		until("the first member holds its lanes", func() bool { return isHeld(first) })
		calls, parked, since := o.calls.Load(), o.parked.Load(), time.Now()
		until("two probes", func() bool { return o.calls.Load() >= calls+2 })
		n, copies := o.calls.Load()-calls, o.parked.Load()-parked
		// The first probe comes after a second, and each that fails doubles the time to the next.
		if open := time.Since(since); copies != 0 || float64(n) > 1+math.Log2(1+open.Seconds()) {
			t.Errorf("%d calls and %d copies within %v of an open breaker, want probes alone", n, copies, open)
		}
		second := k.Run(cfg)
		until("the second member holds its lanes", func() bool { return isHeld(second) && len(second.Health().Lanes) == 2 })
		began := time.Now()
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > cfg.DrainTimeout/2 { // what it holds, nobody awaits
			t.Errorf("it took %v to stop a member with an open breaker", took)
		}
		until("the second has all lanes", func() bool { return len(second.Health().Lanes) == 4 && isHeld(second) })
		o.down.Store(false)
		until("the breaker closes", func() bool { return len(second.Health().Breakers) == 0 })
		k.Conserved()
		const running = 4
		if n := o.parked.Load(); n > 2*(100+100+running) {
			t.Errorf("%d copies were parked, want those that opened two breakers", n)
		}
		if n := o.bad.Load(); n > 0 {
			t.Errorf("%d healthy records are dead-lettered", n)
		}
		moves := o.seen()
		if n := len(moves); n < 4 || moves[0] != "closed-open" || moves[n-2] != "open-ramp" || moves[n-1] != "ramp-closed" {
			t.Errorf("the breakers went %v", moves)
		}
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
}
