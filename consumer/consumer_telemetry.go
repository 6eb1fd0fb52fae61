package consumer

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// observe observes the state of the consumer and its lanes.
func (c *Consumer) observe(o metric.Observer, g *gauges) {
	type tier struct{ topic, delay string }
	type held struct{ parked, due, gaps, lag int64 }
	var (
		tiers  = map[tier]held{}
		copies = map[string]int64{}
		states = map[State]int64{}
		stuck  int64
		due    = map[string]int64{}
		now    = time.Now()
		group  = semconv.MessagingConsumerGroupName(c.cfg.Group)
	)
	for _, l := range c.lanesNow() {
		h, ok := inspection{l}.health(now)
		if !ok {
			continue
		}
		states[h.State]++
		copies[l.topic] += int64(h.Forwards)
		l.mu.Lock()
		stuck += int64(len(inspection{l}.overdue(now)))
		due[l.topic] += 0
		if l.guard.HoldsRetries() {
			due[l.topic] += int64(l.heldRetries())
		}
		add := func(f *feed, parked int, due int64) {
			at := tier{l.topic, tierName(f.tier.Delay)}
			sum, ok := tiers[at]
			if !ok {
				sum.due = math.MaxInt64
			}
			sum.parked += int64(parked)
			sum.gaps += f.tracker.Next - f.tracker.Floor() - int64(f.tracker.Pending)
			sum.lag += max(f.end-f.tracker.Floor(), 0)
			sum.due = min(sum.due, due)
			tiers[at] = sum
		}
		add(&l.source.feed, 0, math.MaxInt64)
		for _, f := range l.tiers() {
			add(&f.feed, f.parked.Waiting(), f.parked.Due())
		}
		l.mu.Unlock()
	}
	for at, sum := range tiers {
		with := metric.WithAttributes(semconv.MessagingDestinationName(at.topic), group, keyTier.String(at.delay))
		o.ObserveInt64(g.gaps, sum.gaps, with)
		o.ObserveInt64(g.lag, sum.lag, with)
		if at.delay == "" {
			continue
		}
		o.ObserveInt64(g.parked, sum.parked, with)
		if sum.due < math.MaxInt64 {
			o.ObserveInt64(g.oldest, sum.due/1000, with)
		}
	}
	for topic, n := range copies {
		o.ObserveInt64(g.inflight, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	for state, n := range states {
		o.ObserveInt64(g.lanes, n, metric.WithAttributes(group, keyState.String(string(state))))
	}
	for topic, n := range due {
		o.ObserveInt64(g.waiting, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	c.observeGuards(o, g, now)
	with := metric.WithAttributes(group)
	o.ObserveInt64(g.evicted, c.tierEnv.Budget.Evicted(), with)
	o.ObserveInt64(g.refetched, c.tierEnv.Budget.Refetched(), with)
	o.ObserveInt64(g.stuck, stuck+int64(len(c.outlasting(now))), with)
	h, _ := c.membership.Health(now)
	state, failing := "joining", int64(0)
	if h.Joined {
		state = "joined"
	}
	if !h.CommitsFailSince.IsZero() {
		failing = 1
	}
	o.ObserveInt64(g.members, 1, with, metric.WithAttributes(keyMember.String(state)))
	o.ObserveInt64(g.failing, failing, with)
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
