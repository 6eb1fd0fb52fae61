package consumer

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// gauges are the instruments that are observed when a meter collects. Several consumers of one
// process share them. Most are up-down counters: values that consumers observe under equal
// attributes add up, unlike a gauge's.
type gauges struct {
	parked, oldest, inflight, evicted, refetched, lanes, stuck, members, failing, gaps, lag metric.Int64Observable
	guards, guarded, waiting, open                                                          metric.Int64Observable
}

// newTelemetry makes the instruments, which observe fills. values is the context that Run was
// called with. The global providers are read here, in Run, so that they may be set after New.
func newTelemetry(values context.Context, cfg *Config, observe func(metric.Observer, *gauges)) (*telemetry, error) {
	tracers := cmp.Or(cfg.TracerProvider, otel.GetTracerProvider())
	meters := cmp.Or(cfg.MeterProvider, otel.GetMeterProvider())
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	t := &telemetry{
		tracer: tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		group:  cfg.Group, spanned: hasSpan(values), base: time.Now(), classes: map[string]bool{},
		failures: map[failure][]metric.RecordOption{}, routes: map[routing][]metric.AddOption{},
	}
	g := &gauges{}
	var errs [20]error
	t.duration, errs[0] = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of a run of the handler."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
	t.lateness, errs[1] = meter.Float64Histogram("siding.delivery.lateness", metric.WithUnit("s"),
		metric.WithDescription("Time from when a parked record was due to the start of its handler."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300))
	t.routed, errs[2] = meter.Int64Counter("siding.routed.records", metric.WithUnit("{record}"),
		metric.WithDescription("Records that failed, by destination."))
	t.expired, errs[3] = meter.Int64Counter("siding.expired.records", metric.WithUnit("{record}"),
		metric.WithDescription("Offsets that retention deleted before they were read."))
	t.omitted, errs[4] = meter.Int64Counter("siding.omitted.values", metric.WithUnit("{record}"),
		metric.WithDescription("Dead letters that were written without their value, which was too large."))
	g.parked, errs[5] = meter.Int64ObservableUpDownCounter("siding.parked.records", metric.WithUnit("{record}"),
		metric.WithDescription("Records of a tier that were read and are not due yet, in memory or evicted."))
	g.oldest, errs[6] = meter.Int64ObservableGauge("siding.parked.oldest_due", metric.WithUnit("s"),
		metric.WithDescription("When the first parked record of a tier is due, in Unix seconds."))
	g.inflight, errs[7] = meter.Int64ObservableUpDownCounter("siding.forwards.inflight", metric.WithUnit("{record}"),
		metric.WithDescription("Copies that are not acknowledged yet."))
	g.evicted, errs[8] = meter.Int64ObservableCounter("siding.parked.released", metric.WithUnit("By"),
		metric.WithDescription("Bytes of parked records that were evicted for lack of room."))
	g.refetched, errs[9] = meter.Int64ObservableCounter("siding.parked.refetched", metric.WithUnit("By"),
		metric.WithDescription("Bytes of records that were fetched again to run parked ones."))
	g.lanes, errs[10] = meter.Int64ObservableUpDownCounter("siding.lanes", metric.WithUnit("{lane}"), metric.WithDescription("Lanes by state."))
	g.members, errs[11] = meter.Int64ObservableUpDownCounter("siding.members", metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers by whether they are members of their group."))
	g.failing, errs[12] = meter.Int64ObservableUpDownCounter("siding.commits.failing", metric.WithUnit("{consumer}"),
		metric.WithDescription("Consumers whose last commit was not accepted."))
	g.gaps, errs[13] = meter.Int64ObservableUpDownCounter("siding.offset.gaps", metric.WithUnit("{offset}"),
		metric.WithDescription("Offsets that are finished ahead of an unfinished one: a crash repeats them."))
	g.stuck, errs[14] = meter.Int64ObservableUpDownCounter("siding.handlers.stuck", metric.WithUnit("{handler}"),
		metric.WithDescription("Handlers that ignore their timeout, or the end of their lane."))
	g.guards, errs[15] = meter.Int64ObservableUpDownCounter("siding.guards", metric.WithUnit("{topic}"),
		metric.WithDescription("Source topics by the state of their guard: closed, strained, held."))
	g.guarded, errs[16] = meter.Int64ObservableCounter("siding.guard.time", metric.WithUnit("s"),
		metric.WithDescription("Time for which a source topic was strained, or held."))
	g.waiting, errs[17] = meter.Int64ObservableUpDownCounter("siding.retries.held", metric.WithUnit("{record}"),
		metric.WithDescription("Due retries that wait for the retry budget."))
	g.lag, errs[18] = meter.Int64ObservableUpDownCounter("siding.lag", metric.WithUnit("{offset}"),
		metric.WithDescription("Offsets between the first unfinished one and the end of the partition, as of the last fetch that brought records."))
	g.open, errs[19] = meter.Int64ObservableUpDownCounter("siding.transactions.awaited", metric.WithUnit("{partition}"),
		metric.WithDescription("Partitions of sources and retry topics that a transaction which stays open holds up."))
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	var err error
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(o, g)
		return nil
	}, g.parked, g.oldest, g.inflight, g.evicted, g.refetched, g.lanes, g.stuck, g.members, g.failing, g.gaps, g.lag,
		g.guards, g.guarded, g.waiting, g.open)
	return t, err
}
