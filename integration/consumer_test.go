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

// A frozen broker keeps connections open and answers nothing. kgo awaited it for 10 s a request,
// and Run returned after minutes: those of both protocols, and that of a start.
//
// The times to the second are those of consumer/consumer_run_test.go, in virtual time. Here
// Run has to return while the broker is frozen, before such waits can be over.
func TestConsumer_EndsInTimeWhileTheBrokerIsFrozen(t *testing.T) {
	long(t)
	t.Parallel()
	kafka := ownKafka(t)
	k := consumertest.On(t, kafka.Opts()...)
	topic := topicName(t)
	k.CreateTopic(topic, 2)
	const drain = 2 * time.Second
	config := func(group string, opts ...kgo.Opt) consumer.Config {
		return consumer.Config{
			Group: group, Topics: []string{topic}, DrainTimeout: drain, Kafka: append(kafka.Opts(), opts...),
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "waits" { // until it is cancelled
					<-ctx.Done()
				}
				return ctx.Err()
			},
		}
	}
	type member struct {
		name   string
		cancel context.CancelFunc
		ended  chan error
		most   time.Duration
	}
	begin := func(name string, most time.Duration, cfg consumer.Config) (member, *consumer.Consumer) {
		c, err := consumer.New(cfg)
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		m := member{name, cancel, make(chan error, 1), most}
		go func() { m.ended <- c.Run(ctx) }()
		return m, c
	}
	var all []member
	for name, opts := range map[string][]kgo.Opt{"classic": nil, "KIP-848": {kgo.ServerSideBalancer()}} {
		m, c := begin(name, drain+40*time.Second, config("billing-"+name, opts...))
		all = append(all, m)
		select {
		case <-c.Ready():
		case err := <-m.ended:
			t.Fatalf("%s: Run returned %v", name, err)
		case <-time.After(time.Minute):
			t.Fatalf("%s: not ready within a minute", name)
		}
	}
	for _, value := range []string{"fine", "waits"} {
		for p := range int32(2) {
			k.Produce(&kgo.Record{Topic: topic, Partition: p, Value: []byte(value)})
		}
	}
	kafka.Pause(t, 1)
	defer kafka.Unpause(t, 1)
	starting, _ := begin("a start", 8*time.Second, config("billing-late"))
	all = append(all, starting)
	// The connections of the beginning time out after 10 s; then kgo opens new ones.
	<-time.After(12 * time.Second)
	began := time.Now()
	for _, m := range all {
		m.cancel()
	}
	var waiting sync.WaitGroup
	for _, m := range all {
		waiting.Go(func() {
			select {
			case err := <-m.ended:
				if err != nil {
					t.Errorf("%s: Run returned %v", m.name, err)
				}
				t.Logf("%s: Run returned after %v", m.name, time.Since(began))
			case <-time.After(m.most):
				t.Errorf("%s: Run did not return within %v", m.name, m.most)
			}
		})
	}
	waiting.Wait()
}

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
			eventually(t, k.Patience, func() error {
				if is() {
					return nil
				}
				return fmt.Errorf("%s; the topic went %v", what, o.seen())
			})
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
