package consumer

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// breakers are the breakers of a consumer's topics, and what has to be told about them.
type breakers struct {
	of map[string]*breaker.Topic // by source; nil where the policy has none

	mu     sync.Mutex
	events []breakerEvent
	noted  chan struct{} // capacity 1
}

// breakerEvent is an event of a topic's breaker.
type breakerEvent struct {
	topic string
	breaker.Event
}

func (b *breakers) init(c *Consumer) {
	b.of, b.noted = map[string]*breaker.Topic{}, make(chan struct{}, 1)
	for topic, p := range c.policies {
		if p.Breaker.Off && p.RetryBudget.Off {
			continue
		}
		b.of[topic] = breaker.NewTopic(&breaker.Env{
			Elapsed: func() time.Duration { return time.Since(c.clock.Base) },
			Lanes:   func() []breaker.Lane { return c.breakerLanes(topic) },
			Ended:   func() bool { return c.ctx.Err() != nil },
			Note:    func(e breaker.Event) { b.note(breakerEvent{topic, e}) },
		}, p.breakerSettings())
	}
}

// breakerLanes returns the lanes of a source as its breaker knows them.
func (c *Consumer) breakerLanes(source string) (all []breaker.Lane) {
	for _, l := range c.lanesOn(source) {
		all = append(all, l)
	}
	return all
}

// note queues an event. It may be called under any lock.
func (b *breakers) note(e breakerEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	select {
	case b.noted <- struct{}{}:
	default:
	}
}

func (b *breakers) take() []breakerEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.events
	b.events = nil
	return all
}

// tellOpen is the interval of the lines about breakers that stay open.
const tellOpen = time.Minute

// breakerLoop logs changes of the breakers, and calls their hooks, until all lanes are gone.
func (c *Consumer) breakerLoop(ctx context.Context) {
	t := time.NewTicker(tellOpen)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, b := range c.breakers.of {
				b.Stop()
			}
			c.reportBreakers()
			return
		case now := <-t.C:
			c.logOpenBreakers(now)
		case <-c.breakers.noted:
			c.reportBreakers()
		}
	}
}

// reportBreakers logs the queued events, and calls the hooks.
func (c *Consumer) reportBreakers() {
	for _, e := range c.breakers.take() {
		if e.Retries {
			c.throttle.Once("budget of "+e.topic, logthrottle.Every, func() {
				c.log.Warn("siding: due retries wait, since too many failed again", "topic", e.topic)
			})
			continue
		}
		c.logBreaker(&e)
		c.hooks.reportBreaker(BreakerChange{
			Topic: e.topic, From: e.From.String(), To: e.To.String(), At: e.At, Since: e.Status.Since, Probes: e.Status.Probes, Why: e.Status.Why,
		})
	}
}

func (c *Consumer) logBreaker(e *breakerEvent) {
	lasted := []any{"topic", e.topic, "lasted", e.At.Sub(e.Status.Since), "probes", e.Status.Probes}
	why := []any{"why", e.Status.Why, "class", e.Status.Last.Class, "error", e.Status.Last.Message}
	switch {
	case e.To == breaker.Closed:
		c.log.Info("siding: the breaker of a topic closed; its records run", lasted...)
	case e.To == breaker.Ramp:
		c.log.Info("siding: the probes of a topic succeed; more and more of its records run", lasted...)
	case e.From == breaker.Ramp:
		c.log.Warn("siding: the breaker of a topic opened again; its records wait, but for probes", append(lasted, why...)...)
	default:
		c.log.Warn("siding: the breaker of a topic opened; its records wait, but for probes", append(lasted[:2], why...)...)
	}
}

// logOpenBreakers logs the breakers that are not closed.
func (c *Consumer) logOpenBreakers(now time.Time) {
	for _, topic := range c.cfg.Topics {
		b := c.breakers.of[topic]
		if !b.Holds() {
			continue
		}
		is := b.Status(now)
		c.log.Warn("siding: the breaker of a topic is open", "topic", topic, "state", is.State.String(), "lasted", now.Sub(is.Since), "probes", is.Probes,
			"why", is.Why, "class", is.Last.Class, "error", is.Last.Message)
	}
}

// observeBreakers observes the state of the breakers, how often they opened, and for how long they
// held their topics.
func (c *Consumer) observeBreakers(o metric.Observer, g *gauges, now time.Time) {
	group := semconv.MessagingConsumerGroupName(c.cfg.Group)
	observeTransactions(c.lanesNow(), o, g, group)
	for topic, b := range c.breakers.of {
		about := []attribute.KeyValue{semconv.MessagingDestinationName(topic), group}
		is := b.Totals(now)
		o.ObserveInt64(g.breakers, 1, metric.WithAttributes(append(about, keyBreaker.String(is.State.String()))...))
		o.ObserveInt64(g.held, int64(is.Held/time.Second), metric.WithAttributes(about...))
		for reason, n := range is.Openings {
			o.ObserveInt64(g.openings, n, metric.WithAttributes(append(about, keyOpening.String(reason.String()))...))
		}
	}
}
