package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// service is what a handler depends on. It counts the calls, and may be down.
type service struct {
	down   atomic.Bool
	fault  func() error // of a call while it is down
	takes  time.Duration
	calls  atomic.Int64
	failed atomic.Int64
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

// copies counts the copies of a consumer's records.
type copies struct{ parked, dead atomic.Int64 }

func (c *copies) OnParked(consumer.Routed)       { c.parked.Add(1) }
func (c *copies) OnDeadLettered(consumer.Routed) { c.dead.Add(1) }

// changes are the transitions of topics.
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

// hold has all calls fail until the topic is held.
func (s *service) hold(k *consumertest.Kafka, c *consumertest.Consumer) (all []*kgo.Record) {
	s.down.Store(true)
	holdBy(c, func() { all = append(all, k.Produce(many(15)...)...) })
	return all
}

// holdBy produces records that fail until the topic is held.
func holdBy(c *consumertest.Consumer, produce func()) {
	for ; !isHeld(c); time.Sleep(time.Second / 2) {
		produce()
	}
}

// isHeld reports whether the consumer's only topic is held.
func isHeld(c *consumertest.Consumer) bool {
	h := c.Health()
	return len(h.Topics) > 0 && h.Topics[0].State == consumer.StateHeld
}

// good waits until so many calls have succeeded. What an outage left comes back at the pace of the
// retry budget, while the source is idle.
func (s *service) good(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Minute); s.calls.Load()-s.failed.Load() < int64(n); time.Sleep(time.Second) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d are handled", s.calls.Load()-s.failed.Load(), n)
		}
	}
}

// withBreaker is a configuration with the default policy.
func withBreaker(s *service) consumer.Config {
	cfg := config(s.handle)
	cfg.Policy = consumer.Policy{}
	quietly(&cfg)
	return cfg
}

// steadily produces n records in each interval, for a time.
func steadily(k *consumertest.Kafka, n int, each, during time.Duration) (all []*kgo.Record) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(each) {
		all = append(all, k.Produce(many(n)...)...)
	}
	return all
}
