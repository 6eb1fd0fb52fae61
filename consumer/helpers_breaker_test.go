package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
