package consumer

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Instrumentation follows OpenTelemetry's semantic conventions for messaging and Kafka, version
// 1.43 (status: development). The next version renames some keys.
const scope = modulePath + "/consumer"

// The outcomes of a delivery.
const (
	outcomeHandled      = "handled"
	outcomeRetried      = "retried"
	outcomeDeadLettered = "dead_lettered"
	outcomeDiscarded    = "discarded"
	outcomeStopped      = "stopped"
	outcomeDrained      = "drained" // on spans only: it is no attempt
	outcomeProbed       = "probed"  // a failed probe of a topic that is held: it is no attempt
)

const (
	keyTier    = attribute.Key("siding.tier")
	keyOutcome = attribute.Key("siding.outcome")
	keyTo      = attribute.Key("siding.to")
	keyReason  = attribute.Key("siding.reason")
	keyState   = attribute.Key("siding.lane.state")
	keyMember  = attribute.Key("siding.member.state")
	keyGuard   = attribute.Key("siding.guard.state")
)

// maxClasses bounds the class names that a consumer uses as metric attributes. A class name that
// contains a record's id would otherwise make a time series per record.
const maxClasses = 100

// telemetry holds the consumer's tracer and instruments; nil before Run.
type telemetry struct {
	tracer   trace.Tracer
	spanned  bool      // the context of Run has a span
	off      bool      // neither spans nor durations are wanted: Config.AttemptTelemetryOff
	base     time.Time // durations are differences of times since base
	duration metric.Float64Histogram
	lateness metric.Float64Histogram
	handled  metric.Int64Counter
	routed   metric.Int64Counter
	expired  metric.Int64Counter
	omitted  metric.Int64Counter
	group    string
	observed metric.Registration
	// by source topic; never written after its making
	handledOf map[string]*handledRecords
	// The coarse reading before which the tracer is not asked for a span again: it gave none.
	askTracerAt atomic.Int64

	mu       sync.Mutex
	classes  map[string]bool
	failures map[failure][]metric.RecordOption
	routes   map[routing][]metric.AddOption
}

// failure and routing are the keys of the attribute sets of failed records. Each set is made once.
// There are few of them, since class names are bounded.
type (
	failure struct {
		topic          string
		delay          time.Duration // of the tier
		outcome, class string
	}
	routing struct {
		topic, to, class string
		reason           headers.Reason
	}
)

// handledRecords counts the handled records of a source topic for a meter. A call of the meter
// costs more than the rest of such a record, so it gets their number when it collects, and at the
// end.
type handledRecords struct {
	since atomic.Int64 // the meter got the last number
	with  []metric.AddOption
}

// newHandledRecords makes the counts of all source topics.
func newHandledRecords(cfg *Config) map[string]*handledRecords {
	all := map[string]*handledRecords{}
	for _, topic := range cfg.Topics {
		all[topic] = &handledRecords{with: []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(
			semconv.MessagingDestinationName(topic), semconv.MessagingConsumerGroupName(cfg.Group)))}}
	}
	return all
}

// countHandled counts records that were handled.
func (t *telemetry) countHandled(topic string, n int64) {
	if t == nil {
		return
	}
	if h := t.handledOf[topic]; h != nil {
		h.since.Add(n)
	}
}

// reportHandled gives the meter the numbers of records that were handled since the last call.
func (t *telemetry) reportHandled() {
	for _, h := range t.handledOf {
		t.handled.Add(context.Background(), h.since.Swap(0), h.with...)
	}
}

// end ends the consumer's part of the meter, which outlives it.
func (t *telemetry) end() {
	_ = t.observed.Unregister() // fails only for a callback that was never registered
	t.reportHandled()
}

// class returns the class name for an attribute: name, or "other" beyond maxClasses names.
func (t *telemetry) class(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.classes[name] {
		return name
	}
	if len(t.classes) >= maxClasses {
		return "other"
	}
	t.classes[name] = true
	return name
}

// failed returns the attributes of a failed run's duration.
func (t *telemetry) failed(from *origin, outcome, class string) []metric.RecordOption {
	is := failure{from.source, from.delay, outcome, t.class(class)}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.failures[is]
	if !ok {
		with = from.sig.with(keyOutcome.String(outcome), semconv.ErrorTypeKey.String(is.class))
		t.failures[is] = with
	}
	return with
}

// route returns the attributes of a failed record's routing.
func (t *telemetry) route(topic, to, class string, reason headers.Reason) []metric.AddOption {
	is := routing{topic, to, t.class(class), reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.routes[is]
	if !ok {
		with = []metric.AddOption{metric.WithAttributes(semconv.MessagingDestinationName(topic), semconv.MessagingConsumerGroupName(t.group),
			keyTo.String(to), semconv.ErrorTypeKey.String(is.class), keyReason.String(string(reason)))}
		t.routes[is] = with
	}
	return with
}

// countRouted counts a failed record by its destination.
func (t *telemetry) countRouted(topic, to, class string, reason headers.Reason) {
	if t == nil || !t.routed.Enabled(context.Background()) {
		return
	}
	t.routed.Add(context.Background(), 1, t.route(topic, to, class, reason)...)
}

// countParked counts a failed record that goes to a tier.
func (t *telemetry) countParked(topic string, tier time.Duration, class string) {
	// Checked here too, to save formatting the delay.
	if t != nil && t.routed.Enabled(context.Background()) {
		t.countRouted(topic, retrytopics.FormatDelay(tier), class, "")
	}
}

// countExpired counts offsets that retention deleted before they were read.
func (t *telemetry) countExpired(topic string, n int64) {
	if t != nil {
		t.expired.Add(context.Background(), n, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(t.group)))
	}
}

// countOmitted counts a dead letter that was written without its value.
func (t *telemetry) countOmitted(topic string) {
	if t != nil {
		t.omitted.Add(context.Background(), 1, metric.WithAttributes(semconv.MessagingDestinationName(topic),
			semconv.MessagingConsumerGroupName(t.group)))
	}
}

// gauges are the instruments that are observed when a meter collects. Several consumers of one
// process share them. Most are up-down counters: values that consumers observe under equal
// attributes add up, unlike a gauge's.
type gauges struct {
	parked, oldest, inflight, evicted, refetched, lanes, stuck, members, failing, gaps, lag metric.Int64Observable
	guards, guarded, waiting, open, full                                                    metric.Int64Observable
}

// newTelemetry makes the instruments, which observe fills. values is the context that Run was
// called with. The global providers are read here, in Run, so that they may be set after New.
func newTelemetry(values context.Context, cfg *Config, observe func(metric.Observer, *gauges)) (*telemetry, error) {
	tracers := cmp.Or(cfg.TracerProvider, otel.GetTracerProvider())
	meters := cmp.Or(cfg.MeterProvider, otel.GetMeterProvider())
	meter := meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	t := &telemetry{
		tracer: tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		group:  cfg.Group, spanned: hasSpan(values), off: cfg.AttemptTelemetryOff, base: time.Now(), classes: map[string]bool{},
		failures: map[failure][]metric.RecordOption{}, routes: map[routing][]metric.AddOption{},
		handledOf: newHandledRecords(cfg),
	}
	g := &gauges{}
	var errs [22]error
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
		metric.WithDescription("Records of a tier that were read and are not due yet, in memory or evicted; of the tier held, those that wait in their source, and those behind them."))
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
	g.full, errs[21] = meter.Int64ObservableUpDownCounter("siding.held.full", metric.WithUnit("{lane}"),
		metric.WithDescription("Lanes that begin no record of another key, since they hold as many keys or records as they may."))
	t.handled, errs[20] = meter.Int64Counter("siding.handled.records", metric.WithUnit("{record}"),
		metric.WithDescription("Records that were handled."))
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	var err error
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		t.reportHandled()
		observe(o, g)
		return nil
	}, g.parked, g.oldest, g.inflight, g.evicted, g.refetched, g.lanes, g.stuck, g.members, g.failing, g.gaps, g.lag,
		g.guards, g.guarded, g.waiting, g.open, g.full)
	return t, err
}

// signals holds the parts that all spans and measurements of a feed share, made once. The usual
// attributes are absent, since OpenTelemetry's SDK goes over them at each measurement: the tier of
// a source, and the outcome of a run that was handled.
type signals struct {
	name    string // of the spans
	span    []trace.SpanStartOption
	root    []trace.SpanStartOption // the same, if the context has a foreign span
	common  []attribute.KeyValue
	handled []metric.RecordOption
	late    []metric.RecordOption
}

// with returns the attributes of a run's duration: the common ones and more.
func (s *signals) with(more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(s.common[:len(s.common):len(s.common)], more...)...))}
}

// newSignals makes the signals of a feed's origin.
func newSignals(from *origin, group string) signals {
	common := withTier(tierName(from.delay),
		semconv.MessagingSystemKafka,
		semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(from.source),
		semconv.MessagingConsumerGroupName(group))
	span := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		// Set at the start, because samplers may use them.
		trace.WithAttributes(append(common[:len(common):len(common)], semconv.MessagingOperationTypeProcess,
			semconv.MessagingDestinationPartitionID(strconv.Itoa(int(from.partition))))...),
	}
	s := signals{
		name:   "process " + from.source,
		span:   span,
		root:   append(span[:len(span):len(span)], trace.WithNewRoot()),
		common: common,
		late: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(semconv.MessagingDestinationName(from.source),
			semconv.MessagingConsumerGroupName(group), keyTier.String(cmp.Or(tierName(from.delay), heldTier))))},
	}
	s.handled = s.with()
	return s
}

// heldTier is the tier's attribute for records that wait in their source: Config.HoldKeys.
const heldTier = "held"

// withTier returns attributes and the one of a tier, which the source has not.
func withTier(name string, others ...attribute.KeyValue) []attribute.KeyValue {
	if name == "" {
		return others
	}
	return append(others, keyTier.String(name))
}

// tierName returns a tier's attribute: its delay, or the empty string for the source.
func tierName(delay time.Duration) string {
	if delay == 0 {
		return ""
	}
	return retrytopics.FormatDelay(delay)
}

// hasSpan reports whether a span started in ctx would join an existing trace.
func hasSpan(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).HasTraceID() }

// recordCarrier reads a record's trace headers. It never writes: they stay as the producer wrote
// them.
type recordCarrier []kgo.RecordHeader

// Get returns the value of the last header with a key, or an empty string.
func (c recordCarrier) Get(key string) string {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].Key == key {
			return string(c[i].Value)
		}
	}
	return ""
}

func (recordCarrier) Set(string, string) {}

// Keys returns nothing: propagation.TraceContext asks for the keys that it knows.
func (recordCarrier) Keys() []string { return nil }
