package consumer

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
)

// initGuards makes the guards of the topics.
func initGuards(c *Consumer) {
	g := &c.guards
	g.of, g.queued = map[string]*guard.Topic{}, make(chan struct{}, 1)
	for topic, p := range c.policies {
		if p.Breaker.Off && p.RetryBudget.Off {
			continue
		}
		g.of[topic] = guard.NewTopic(&guard.Env{
			Elapsed: func() time.Duration { return time.Since(c.clock.Base) },
			Lanes:   func() []guard.Lane { return c.guardLanes(topic) },
			Ended:   func() bool { return c.ctx.Err() != nil },
			Note:    func(e guard.Event) { g.queue(guardEvent{topic, e}) },
		}, p.guardSettings())
	}
}

// guardLanes returns the lanes of a source as its guard knows them.
func (c *Consumer) guardLanes(source string) (all []guard.Lane) {
	for _, l := range c.lanesOn(source) {
		all = append(all, l)
	}
	return all
}

// guardedInterval is the interval of the lines about topics that stay strained or held.
const guardedInterval = time.Minute

// guardLoop logs changes of the guards, and calls their hooks, until all lanes are gone.
func (c *Consumer) guardLoop(ctx context.Context) {
	t := time.NewTicker(guardedInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, g := range c.guards.of {
				g.Stop()
			}
			c.reportGuards()
			return
		case now := <-t.C:
			for _, is := range c.topicHealth(now) {
				c.log.Warn("siding: a topic is strained or held", "topic", is.Topic, "state", string(is.State), "lasts", now.Sub(is.Since), "share", is.Share, "runs", is.Runs,
					"class", is.Class, "error", is.LastError, "waiting", is.Waiting, "probes", is.Probes, "do", is.Do)
			}
		case <-c.guards.queued:
			c.reportGuards()
		}
	}
}

// reportGuards logs the queued events, and calls the hooks.
func (c *Consumer) reportGuards() {
	for _, e := range c.guards.take() {
		if e.Retries {
			c.throttle.Once("budget of "+e.topic, logthrottle.Every, func() {
				c.log.Warn("siding: due retries wait for the retry budget", "topic", e.topic)
			})
			continue
		}
		e.log(c.log)
		c.hooks.reportBreaker(BreakerChange{
			Topic: e.topic, From: e.From.String(), To: e.To.String(), At: e.At, Since: e.Status.Began, Probes: e.Status.Probes, Why: e.Status.Why(),
		})
	}
}

// topicHealth returns the health of the topics that are strained or held.
func (c *Consumer) topicHealth(now time.Time) (all []TopicHealth) {
	for _, topic := range slices.Sorted(slices.Values(c.cfg.Topics)) {
		g := c.guards.of[topic]
		if g.Noted() == nil {
			continue
		}
		is := g.Status(now)
		h, ok := topicHealthOf(topic, &is)
		if !ok {
			continue
		}
		for _, l := range c.lanesOn(topic) {
			h.Waiting += inspection{l}.waiting(is.State == guard.Held)
		}
		all = append(all, h)
	}
	return all
}

// observeGuards observes the states of the guards, and for how long they have had each.
func (c *Consumer) observeGuards(o metric.Observer, g *gauges, now time.Time) {
	group := semconv.MessagingConsumerGroupName(c.cfg.Group)
	lanes := c.lanesNow()
	observeTransactions(lanes, o, g, group)
	observeHeld(lanes, o, g, group)
	for topic, t := range c.guards.of {
		about := []attribute.KeyValue{semconv.MessagingDestinationName(topic), group}
		times, is := t.Times(now)
		o.ObserveInt64(g.guards, 1, metric.WithAttributes(append(about, keyGuard.String(is.String()))...))
		for state, d := range times {
			if state := guard.State(state); state != guard.Closed {
				o.ObserveInt64(g.guarded, int64(d/time.Second), metric.WithAttributes(append(about, keyGuard.String(state.String()))...))
			}
		}
	}
}

// observeTransactions observes which partitions open transactions hold up.
func observeTransactions(lanes []*lane, o metric.Observer, g *gauges, group attribute.KeyValue) {
	open := map[string]int64{}
	for _, l := range lanes {
		l.mu.Lock()
		open[l.topic] += inspection{l}.awaited().N
		l.mu.Unlock()
	}
	for topic, n := range open {
		o.ObserveInt64(g.open, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
}

// observeHeld observes the records that wait in their sources, and the lanes that hold as many as
// they may.
func observeHeld(lanes []*lane, o metric.Observer, g *gauges, group attribute.KeyValue) {
	full, held, due := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, l := range lanes {
		l.mu.Lock()
		if full[l.topic] += 0; l.held != nil {
			held[l.topic] += int64(l.held.Held())
			if l.source.isHeldFull() {
				full[l.topic]++
			}
			if at, ok := l.held.Next(); ok && (due[l.topic] == 0 || at.Unix() < due[l.topic]) {
				due[l.topic] = at.Unix()
			}
		}
		l.mu.Unlock()
	}
	for topic, n := range full {
		o.ObserveInt64(g.full, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	for topic, n := range held {
		with := metric.WithAttributes(withTier(heldTier, semconv.MessagingDestinationName(topic), group)...)
		if o.ObserveInt64(g.parked, n, with); due[topic] > 0 {
			o.ObserveInt64(g.oldest, due[topic], with)
		}
	}
}
