package consumer

import (
	"context"
	"math"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// instrument makes the instruments. The global providers are asked for here, in Run, so that they
// may be set after New.
func (c *Consumer) instrument() (err error) {
	tracers, meters := c.cfg.TracerProvider, c.cfg.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	t := &telemetry{
		tracer:  tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		spanned: hasSpan(c.values), base: time.Now(), classes: map[string]bool{},
		failures: map[failure][]metric.RecordOption{}, routes: map[routing][]metric.AddOption{},
	}
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	var e error
	t.duration, e = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of a run of the handler."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
	keep(e)
	t.lateness, e = meter.Float64Histogram("siding.delivery.lateness", metric.WithUnit("s"),
		metric.WithDescription("Time from when a parked record was due to the start of its handler."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300))
	keep(e)
	t.routed, e = meter.Int64Counter("siding.routed.records", metric.WithUnit("{record}"),
		metric.WithDescription("Records that failed, by where they went."))
	keep(e)
	t.expired, e = meter.Int64Counter("siding.expired.records", metric.WithUnit("{record}"),
		metric.WithDescription("Offsets that retention deleted before they were read."))
	keep(e)
	t.omitted, e = meter.Int64Counter("siding.omitted.values", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that were written without their value, which did not fit."))
	keep(e)
	// Several consumers of one process share these instruments. What they observe under the same
	// attributes adds up, which a gauge's values would not.
	parked, e := meter.Int64ObservableUpDownCounter("siding.parked.records", metric.WithUnit("{record}"),
		metric.WithDescription("Records of a tier that were read and wait for their time, in memory or not."))
	keep(e)
	oldest, e := meter.Int64ObservableGauge("siding.parked.oldest_due", metric.WithUnit("s"),
		metric.WithDescription("When the first parked record of a tier is due, in Unix seconds."))
	keep(e)
	inflight, e := meter.Int64ObservableUpDownCounter("siding.forwards.inflight", metric.WithUnit("{record}"),
		metric.WithDescription("Copies that are not acknowledged yet."))
	keep(e)
	released, e := meter.Int64ObservableCounter("siding.parked.released", metric.WithUnit("By"),
		metric.WithDescription("Bytes of parked records that were given up for lack of room."))
	keep(e)
	refetched, e := meter.Int64ObservableCounter("siding.parked.refetched", metric.WithUnit("By"),
		metric.WithDescription("Bytes of records that were fetched again to run parked ones."))
	keep(e)
	lanes, e := meter.Int64ObservableUpDownCounter("siding.lanes", metric.WithUnit("{lane}"), metric.WithDescription("Lanes by state."))
	keep(e)
	members, e := meter.Int64ObservableUpDownCounter("siding.members", metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers by whether they are members of their group."))
	keep(e)
	failing, e := meter.Int64ObservableUpDownCounter("siding.commits.failing", metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers whose last commit was not accepted."))
	keep(e)
	gaps, e := meter.Int64ObservableUpDownCounter("siding.offset.gaps", metric.WithUnit("{offset}"),
		metric.WithDescription("Offsets that are finished ahead of an unfinished one: a crash repeats them."))
	keep(e)
	if err != nil {
		return err
	}
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		c.observe(o, parked, oldest, inflight, lanes, gaps)
		group := metric.WithAttributes(semconv.MessagingConsumerGroupName(c.cfg.Group))
		o.ObserveInt64(released, c.tierEnv.Budget.Evicted(), group)
		o.ObserveInt64(refetched, c.tierEnv.Budget.Refetched(), group)
		h, _ := c.membership.Health(time.Now())
		state, n := "joining", int64(0)
		if h.Joined {
			state = "joined"
		}
		if !h.CommitsFailSince.IsZero() {
			n = 1
		}
		o.ObserveInt64(members, 1, group, metric.WithAttributes(keyMember.String(state)))
		o.ObserveInt64(failing, n, group)
		return nil
	}, parked, oldest, inflight, released, refetched, lanes, members, failing, gaps)
	c.telemetry = t
	return err
}

// observe reports what the lanes hold.
func (c *Consumer) observe(o metric.Observer, parked, oldest, inflight, lanes, gaps metric.Int64Observable) {
	type tier struct {
		topic, delay string
	}
	type held struct{ parked, due, gaps int64 }
	var (
		tiers  = map[tier]held{}
		copies = map[string]int64{}
		states = map[State]int64{}
		now    = time.Now()
		group  = semconv.MessagingConsumerGroupName(c.cfg.Group)
	)
	for _, l := range c.lanesNow() {
		h, ok := l.health(now)
		if !ok {
			continue
		}
		states[h.State]++
		copies[l.topic] += int64(h.Forwards)
		l.mu.Lock()
		add := func(f *feed, parked int, due int64) {
			at := tier{l.topic, tierName(f.tier.Delay)}
			sum, ok := tiers[at]
			if !ok {
				sum.due = math.MaxInt64
			}
			sum.parked += int64(parked)
			sum.gaps += f.tracker.Next - f.tracker.Floor() - int64(f.tracker.Pending)
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
		o.ObserveInt64(gaps, sum.gaps, with)
		if at.delay == "" {
			continue
		}
		o.ObserveInt64(parked, sum.parked, with)
		if sum.due < math.MaxInt64 {
			o.ObserveInt64(oldest, sum.due/1000, with)
		}
	}
	for topic, n := range copies {
		o.ObserveInt64(inflight, n, metric.WithAttributes(semconv.MessagingDestinationName(topic), group))
	}
	for state, n := range states {
		o.ObserveInt64(lanes, n, metric.WithAttributes(group, keyState.String(string(state))))
	}
}

// countRouted counts a record that failed, by where it went.
func (c *Consumer) countRouted(topic, to, class string, reason headers.Reason) {
	t := c.telemetry
	if t == nil || !t.routed.Enabled(context.Background()) {
		return
	}
	t.routed.Add(context.Background(), 1, t.route(c.cfg.Group, topic, to, class, reason)...)
}

// countParked counts a record that failed and waits in a tier.
func (c *Consumer) countParked(topic string, tier time.Duration, class string) {
	// else its name is not worth its memory
	if t := c.telemetry; t != nil && t.routed.Enabled(context.Background()) {
		c.countRouted(topic, retrytopics.FormatDelay(tier), class, "")
	}
}

// countExpired counts what retention deleted before it was read.
func (c *Consumer) countExpired(topic string, n int64) {
	if t := c.telemetry; t != nil {
		t.expired.Add(context.Background(), n, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(c.cfg.Group)))
	}
}

// countOmitted counts a dead letter that was written without its value.
func (c *Consumer) countOmitted(topic string) {
	if t := c.telemetry; t != nil {
		t.omitted.Add(context.Background(), 1, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(c.cfg.Group)))
	}
}
