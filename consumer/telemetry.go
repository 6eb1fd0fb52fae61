package consumer

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Instrumentation follows OpenTelemetry's semantic conventions for messaging and Kafka, version 1.43 (status: development).
// The next version renames some keys; all of them are in this file.
const scope = modulePath + "/consumer"

// What became of a delivery.
const (
	outcomeHandled      = "handled"
	outcomeRetried      = "retried"
	outcomeDeadLettered = "dead_lettered"
	outcomeDiscarded    = "discarded"
	outcomeStopped      = "stopped"
	outcomeDrained      = "drained" // no attempt: of spans only
)

const (
	keyTier    = attribute.Key("siding.tier")
	keyOutcome = attribute.Key("siding.outcome")
	keyTo      = attribute.Key("siding.to")
	keyReason  = attribute.Key("siding.reason")
	keyState   = attribute.Key("siding.lane.state")
	keyMember  = attribute.Key("siding.member.state")
)

// maxClasses bounds the class names that a consumer uses as attributes of metrics: a class that holds a record's id would
// otherwise make a time series a record.
const maxClasses = 100

// telemetry is where the consumer's spans and metrics go; nil before Run.
type telemetry struct {
	tracer      trace.Tracer
	spanned     bool      // the context that Run was called with has a span
	base        time.Time // that durations are reckoned from
	duration    metric.Float64Histogram
	lateness    metric.Float64Histogram
	routed      metric.Int64Counter
	expired     metric.Int64Counter
	omitted     metric.Int64Counter
	observed    metric.Registration
	askTracerAt atomic.Int64 // coarse reading before which no tracer is asked for a span: there was no SDK

	mu       sync.Mutex
	classes  map[string]bool
	failures map[failure][]metric.RecordOption
	routes   map[routing][]metric.AddOption
}

// failure and routing are what the measurements of failed records tell apart, each with its attributes made once. There are not many,
// since class names are bounded and the others are few.
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

// instrument makes the instruments. The global providers are asked for here, in Run, so that they may be set after New.
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
	// Several consumers of one process share these instruments. What they observe under the same attributes adds up, which a
	// gauge's values would not.
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
		o.ObserveInt64(released, c.tierBudget.evictedBytes.Load(), group)
		o.ObserveInt64(refetched, c.tierBudget.refetchedBytes.Load(), group)
		h, _ := c.membership.health(time.Now())
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
		for _, f := range l.all() {
			at := tier{l.topic, f.tierName()}
			sum, ok := tiers[at]
			if !ok {
				sum.due = math.MaxInt64
			}
			sum.parked += int64(f.waiting())
			sum.gaps += f.tracker.next - f.tracker.floor() - int64(f.tracker.pending)
			sum.due = min(sum.due, f.earliestDue())
			tiers[at] = sum
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

// tierName is the tier as an attribute: its delay, nothing for the source.
func (f *feed) tierName() string {
	if f.isSource() {
		return ""
	}
	return retrytopics.FormatDelay(f.delay)
}

// class bounds the names that are used as attributes.
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

// failed are the attributes of a failed run's duration.
func (t *telemetry) failed(f *feed, outcome, class string) []metric.RecordOption {
	is := failure{f.lane.topic, f.delay, outcome, t.class(class)}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.failures[is]
	if !ok {
		with = f.sig.with(keyOutcome.String(outcome), semconv.ErrorTypeKey.String(is.class))
		t.failures[is] = with
	}
	return with
}

// route are the attributes of a failed record, by where it went.
func (t *telemetry) route(group, topic, to, class string, reason headers.Reason) []metric.AddOption {
	is := routing{topic, to, t.class(class), reason}
	t.mu.Lock()
	defer t.mu.Unlock()
	with, ok := t.routes[is]
	if !ok {
		with = []metric.AddOption{metric.WithAttributes(semconv.MessagingDestinationName(topic), semconv.MessagingConsumerGroupName(group),
			keyTo.String(to), semconv.ErrorTypeKey.String(is.class), keyReason.String(string(reason)))}
		t.routes[is] = with
	}
	return with
}

// signals are what a feed's spans and measurements have in common, made once.
type signals struct {
	name    string // of the spans
	span    []trace.SpanStartOption
	root    []trace.SpanStartOption // the same, where the context has another one's span
	common  []attribute.KeyValue
	handled []metric.RecordOption
	late    []metric.RecordOption
}

func (f *feed) signals(group string) signals {
	common := []attribute.KeyValue{
		semconv.MessagingSystemKafka,
		semconv.MessagingOperationName("process"),
		semconv.MessagingDestinationName(f.lane.topic),
		semconv.MessagingConsumerGroupName(group),
		keyTier.String(f.tierName()),
	}
	span := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		// There from the start, since samplers may go by them.
		trace.WithAttributes(append(common[:len(common):len(common)],
			semconv.MessagingOperationTypeProcess, semconv.MessagingDestinationPartitionID(fmt.Sprint(f.lane.partition)))...),
	}
	s := signals{
		name:   "process " + f.lane.topic,
		span:   span,
		root:   append(span[:len(span):len(span)], trace.WithNewRoot()),
		common: common,
		late: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(semconv.MessagingDestinationName(f.lane.topic),
			semconv.MessagingConsumerGroupName(group), keyTier.String(f.tierName())))},
	}
	s.handled = s.with(keyOutcome.String(outcomeHandled))
	return s
}

// with are the attributes of the duration of a run that ended so.
func (s *signals) with(more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(append(s.common[:len(s.common):len(s.common)], more...)...))}
}

// attemptTelemetry is the part of a runner that looks at the clock and makes spans, where somebody wants them.
type attemptTelemetry struct {
	timing  bool            // durations are wanted
	delays  bool            // lateness is
	tracing bool            // spans may be
	asked   bool            // the tracer was, and makes spans
	began   time.Duration   // since the telemetry's base
	took    time.Duration   // by the handler
	ctx     context.Context // that the handler got: measurements taken in it become exemplars of its span
	span    trace.Span      // of the attempt that runs, nil where there is none
	// before is the span of the run before, where this one repeats it in place.
	before trace.SpanContext
}

// enable asks once a unit whether anybody wants to know: without an SDK a record then costs neither a clock read nor a span.
// A tracer can only be asked by starting a span, so one that gave none is left alone for a while; an SDK may come later.
func (g *attemptTelemetry) enable(t *telemetry, now int64) {
	if t != nil {
		ctx := context.Background()
		g.timing, g.delays, g.tracing = t.duration.Enabled(ctx), t.lateness.Enabled(ctx), now >= t.askTracerAt.Load()
	}
}

// askTracer is how long a tracer is left alone that gave no span.
const askTracer = time.Second

// start begins the measuring of an attempt, and returns the context for its handler.
func (g *attemptTelemetry) start(t *telemetry, a *attempt) context.Context {
	g.ctx = a
	if g.tracing {
		g.trace(t, a)
	}
	if g.delays && a.meta != nil && a.meta.NotBefore.UnixMilli() > 0 { // redrive's copies are due since ever
		t.lateness.Record(g.ctx, max(time.Since(a.meta.NotBefore), 0).Seconds(), a.from.sig.late...)
	}
	if g.timing {
		g.began = time.Since(t.base) // half of what time.Now costs, which reads the wall's clock as well
	}
	return g.ctx
}

// trace starts the attempt's span. Without an SDK there is none: the API then hands out the span that the context has
// already, a producer's or one of the user's hooks, which must be neither ended nor hidden from the handler.
func (g *attemptTelemetry) trace(t *telemetry, a *attempt) {
	opts := a.from.sig.span // of a root anyway: to ask for one costs a quarter of a span that is sampled out
	if t.spanned || a.rec.Context != nil && hasSpan(a.rec.Context) {
		opts = a.from.sig.root
	}
	links := linksOf(a)
	if g.before.IsValid() {
		links = append(links, trace.Link{SpanContext: g.before})
		g.before = trace.SpanContext{}
	}
	if len(links) > 0 {
		opts = append(opts[:len(opts):len(opts)], trace.WithLinks(links...))
	}
	ctx, span := t.tracer.Start(a, a.from.sig.name, opts...)
	if !g.asked { // a unit asks once, since that costs as much as the rest of a span that is sampled out
		if is := span.SpanContext(); !is.IsValid() || is.SpanID() == trace.SpanContextFromContext(a).SpanID() {
			g.tracing = false
			t.askTracerAt.Store(a.start + int64(askTracer))
			return
		}
		g.asked = true
	}
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingKafkaOffset(int(a.rec.Offset)))
		if a.rec.Value == nil {
			span.SetAttributes(semconv.MessagingKafkaMessageTombstone(true))
		}
	}
	g.ctx, g.span = ctx, span
}

// hasSpan reports whether a span that is started in ctx would be a part of that one's trace.
func hasSpan(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).HasTraceID() }

// stop is called when the handler returned or panicked: what becomes of the record then is not its handler's time.
func (g *attemptTelemetry) stop(t *telemetry) {
	if g.timing {
		g.took = time.Since(t.base) - g.began
	}
}

// handled ends the measuring of an attempt that succeeded.
func (g *attemptTelemetry) handled(t *telemetry, a *attempt) {
	if g.timing {
		t.duration.Record(g.ctx, g.took.Seconds(), a.from.sig.handled...)
	}
	g.end(outcomeHandled)
}

// failed ends the measuring of an attempt that failed.
func (g *attemptTelemetry) failed(t *telemetry, a *attempt, outcome, message string, r classify.Result) {
	if g.timing {
		t.duration.Record(g.ctx, g.took.Seconds(), t.failed(a.from, outcome, r.Class)...)
	}
	if g.span != nil && g.span.IsRecording() {
		g.span.SetAttributes(semconv.ErrorTypeKey.String(r.Class))
		g.span.SetStatus(codes.Error, shown(message))
	}
	g.end(outcome)
}

// drained ends the measuring of a run that was cut off, which is no attempt.
func (g *attemptTelemetry) drained() { g.end(outcomeDrained) }

// end ends the span, if there is one.
func (g *attemptTelemetry) end(outcome string) {
	g.ctx = nil
	if g.span == nil {
		return
	}
	if g.span.IsRecording() {
		g.span.SetAttributes(keyOutcome.String(outcome))
	}
	g.span.End()
	g.span = nil
}

// shown is an error's text as a span may have it: short, like in a header, and valid UTF-8, since exporters refuse a whole
// batch of spans for one that is not.
func shown(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), headers.MaxMessage)], "\uFFFD")
}

// spanContext is the running span, for a link to it.
func (g *attemptTelemetry) spanContext() (is trace.SpanContext) {
	if g.span != nil {
		is = g.span.SpanContext()
	}
	return is
}

// traceParent is the running span for dlq-traceparent.
func (g *attemptTelemetry) traceParent() string {
	if g.span == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), g.span), carrier)
	return carrier.Get("traceparent")
}

// linksOf are the spans that an attempt follows: the producer's, by the record's own trace headers, and the last attempt's.
func linksOf(a *attempt) (links []trace.Link) {
	add := func(c propagation.TextMapCarrier) {
		ctx := propagation.TraceContext{}.Extract(context.Background(), c)
		if s := trace.SpanContextFromContext(ctx); s.IsValid() {
			links = append(links, trace.Link{SpanContext: s})
		}
	}
	if c := recordCarrier(a.rec.Headers); c.has("traceparent") {
		add(c)
	}
	if a.meta != nil && a.meta.TraceParent != "" {
		add(propagation.MapCarrier{"traceparent": a.meta.TraceParent})
	}
	return links
}

// recordCarrier reads trace headers of a record. It never writes: they stay as the producer wrote them.
type recordCarrier []kgo.RecordHeader

func (c recordCarrier) has(key string) bool {
	for i := range c {
		if c[i].Key == key {
			return true
		}
	}
	return false
}

func (c recordCarrier) Get(key string) string {
	for i := len(c) - 1; i >= 0; i-- {
		if c[i].Key == key {
			return string(c[i].Value)
		}
	}
	return ""
}

func (recordCarrier) Set(string, string) {}

func (c recordCarrier) Keys() []string {
	keys := make([]string, len(c))
	for i := range c {
		keys[i] = c[i].Key
	}
	return keys
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
	if t := c.telemetry; t != nil && t.routed.Enabled(context.Background()) { // else its name is not worth its memory
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

// headerKeepers are the producer's hooks before and behind those of the user, where there are any: whatever these do to a
// copy's headers (a tracer puts its own span in), the record's own trace headers go on as they came.
func (c *Consumer) headerKeepers() (before, behind kgo.Opt) {
	if reflect.ValueOf(c.retryCl.OptValue(kgo.WithHooks)).Len() == 0 {
		return kgo.WithHooks(), kgo.WithHooks()
	}
	return kgo.WithHooks(headerLender{}), kgo.WithHooks(headerKeeper{})
}

// headerLender gives the user's hooks headers of their own: a hook may assign to the elements, not only append.
type headerLender struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (headerLender) OnProduceRecordBuffered(r *kgo.Record) { r.Headers = slices.Clone(r.Headers) }

// headerKeeper puts the copy's headers back as they were written.
type headerKeeper struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (headerKeeper) OnProduceRecordBuffered(r *kgo.Record) {
	if fw, ok := r.Context.Value(forwardKey{}).(*forward); ok {
		r.Headers = fw.headers()
	}
}
