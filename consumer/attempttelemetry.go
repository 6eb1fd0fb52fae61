package consumer

import (
	"context"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// attemptTelemetry is the part of a runner that looks at the clock and makes spans, where somebody
// wants them.
type attemptTelemetry struct {
	timing  bool          // durations are wanted
	delays  bool          // lateness is
	tracing bool          // spans may be
	asked   bool          // the tracer was, and makes spans
	began   time.Duration // since the telemetry's base
	took    time.Duration // by the handler
	// that the handler got: measurements taken in it become exemplars of its span
	ctx  context.Context
	span trace.Span // of the attempt that runs, nil where there is none
	// before is the span of the run before, where this one repeats it in place.
	before trace.SpanContext
}

// askTracer is how long a tracer is left alone that gave no span.
const askTracer = time.Second

// enable asks once a unit whether anybody wants to know: without an SDK a record then costs neither
// a clock read nor a span. A tracer can only be asked by starting a span, so one that gave none is
// left alone for a while; an SDK may come later.
func (g *attemptTelemetry) enable(t *telemetry, now int64) {
	if t != nil {
		ctx := context.Background()
		g.timing, g.delays, g.tracing = t.duration.Enabled(ctx), t.lateness.Enabled(ctx), now >= t.askTracerAt.Load()
	}
}

// start begins the measuring of an attempt, and returns the context for its handler.
func (g *attemptTelemetry) start(t *telemetry, a *attempt) context.Context {
	g.ctx = a
	if g.tracing {
		g.trace(t, a)
	}
	// redrive's copies are due since ever
	if g.delays && a.meta != nil && a.meta.NotBefore.UnixMilli() > 0 {
		t.lateness.Record(g.ctx, max(time.Since(a.meta.NotBefore), 0).Seconds(), a.from.sig.late...)
	}
	if g.timing {
		// half of what time.Now costs, which reads the wall's clock as well
		g.began = time.Since(t.base)
	}
	return g.ctx
}

// trace starts the attempt's span. Without an SDK there is none: the API then hands out the span
// that the context has already, a producer's or one of the user's hooks, which must be neither
// ended nor hidden from the handler.
func (g *attemptTelemetry) trace(t *telemetry, a *attempt) {
	// of a root anyway: to ask for one costs a quarter of a span that is sampled out
	opts := a.from.sig.span
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
	// a unit asks once, since that costs as much as the rest of a span that is sampled out
	if !g.asked {
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

// stop is called when the handler returned or panicked: what becomes of the record then is not its
// handler's time.
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

// hasSpan reports whether a span that is started in ctx would be a part of that one's trace.
func hasSpan(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).HasTraceID() }

// shown is an error's text as a span may have it: short, like in a header, and valid UTF-8, since
// exporters refuse a whole batch of spans for one that is not.
func shown(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), headers.MaxMessage)], "\uFFFD")
}

// linksOf are the spans that an attempt follows: the producer's, by the record's own trace headers,
// and the last attempt's.
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

// recordCarrier reads trace headers of a record. It never writes: they stay as the producer wrote
// them.
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
