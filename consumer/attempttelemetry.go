package consumer

import (
	"context"
	"slices"
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

// attemptTelemetry measures a runner's attempts and makes their spans, if a meter or tracer wants
// them.
type attemptTelemetry struct {
	timing  bool          // a meter wants durations
	delays  bool          // a meter wants the lateness
	tracing bool          // the tracer may make spans
	asked   bool          // the tracer was asked, and makes spans
	began   time.Duration // since the telemetry's base
	took    time.Duration // the handler's time
	// the handler's context: measurements taken under it become exemplars of its span
	ctx  context.Context
	span trace.Span // of the running attempt; nil if there is none
	// before is the span of the previous run, if this run is an in-place retry.
	before trace.SpanContext
}

// askTracer is how long no span is asked of a tracer that gave none.
const askTracer = time.Second

// enable checks once a unit whether measurements and spans are wanted. Without an SDK, a record
// then costs neither a clock read nor a span. The only way to ask a tracer is to start a span. A
// tracer that gave none is asked again after askTracer, since an SDK may be set later.
func (g *attemptTelemetry) enable(t *telemetry, now int64) {
	if t == nil {
		return
	}
	ctx := context.Background()
	g.delays = t.lateness.Enabled(ctx)
	if !t.off {
		g.timing, g.tracing = t.duration.Enabled(ctx), now >= t.askTracerAt.Load()
	}
}

// start begins to measure an attempt, and returns the context for its handler.
func (g *attemptTelemetry) start(t *telemetry, a *attempt) context.Context {
	g.ctx = a
	if g.tracing {
		g.trace(t, a)
	}
	// A redriven record is due since 1970, which is no lateness.
	if g.delays && a.in.meta != nil && a.in.meta.NotBefore.UnixMilli() > 0 {
		t.lateness.Record(g.ctx, max(time.Since(a.in.meta.NotBefore), 0).Seconds(), a.in.from.sig.late...)
	}
	if g.timing {
		// Half the cost of time.Now, which also reads the wall clock.
		g.began = time.Since(t.base)
	}
	return g.ctx
}

// trace starts the attempt's span. Without an SDK, the API returns the span that the context has
// already, a producer's or a user hook's. That span must be neither ended nor hidden from the
// handler.
func (g *attemptTelemetry) trace(t *telemetry, a *attempt) {
	// The span is a root anyway; to ask for a root costs a quarter of a span that is sampled out.
	opts := a.in.from.sig.span
	if t.spanned || a.rec().Context != nil && hasSpan(a.rec().Context) {
		opts = a.in.from.sig.root
	}
	links := linksOf(a)
	if g.before.IsValid() {
		links = append(links, trace.Link{SpanContext: g.before})
		g.before = trace.SpanContext{}
	}
	if len(links) > 0 {
		opts = append(opts[:len(opts):len(opts)], trace.WithLinks(links...))
	}
	ctx, span := t.tracer.Start(a, a.in.from.sig.name, opts...)
	// Checked once a unit: it costs as much as the rest of a span that is sampled out.
	if !g.asked {
		if is := span.SpanContext(); !is.IsValid() || is.SpanID() == trace.SpanContextFromContext(a).SpanID() {
			g.tracing = false
			t.askTracerAt.Store(a.in.last.Load() + int64(askTracer))
			return
		}
		g.asked = true
	}
	if span.IsRecording() {
		span.SetAttributes(semconv.MessagingKafkaOffset(int(a.rec().Offset)))
		if a.rec().Value == nil {
			span.SetAttributes(semconv.MessagingKafkaMessageTombstone(true))
		}
	}
	g.ctx, g.span = ctx, span
}

// stop ends the handler's time, when it returned or panicked: the routing of the record is not part
// of it.
func (g *attemptTelemetry) stop(t *telemetry) {
	if g.timing {
		g.took = time.Since(t.base) - g.began
	}
}

// handled records an attempt that succeeded.
func (g *attemptTelemetry) handled(t *telemetry, a *attempt) {
	if g.timing {
		t.duration.Record(g.ctx, g.took.Seconds(), a.in.from.sig.handled...)
	}
	g.end(outcomeHandled)
}

// failed records an attempt that failed.
func (g *attemptTelemetry) failed(t *telemetry, a *attempt, outcome, message string, r classify.Result) {
	if g.timing {
		t.duration.Record(g.ctx, g.took.Seconds(), t.failed(a.in.from, outcome, r.Class)...)
	}
	if g.span != nil && g.span.IsRecording() {
		g.span.SetAttributes(semconv.ErrorTypeKey.String(r.Class))
		g.span.SetStatus(codes.Error, shown(message))
	}
	g.end(outcome)
}

// drained ends the span of a run that was cut off, which is no attempt.
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

// spanContext returns the running span, for a link to it.
func (g *attemptTelemetry) spanContext() (is trace.SpanContext) {
	if g.span != nil {
		is = g.span.SpanContext()
	}
	return is
}

// traceParent returns the running span in the form of [headers.Meta].TraceParent.
func (g *attemptTelemetry) traceParent() string {
	if g.span == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), g.span), carrier)
	return carrier.Get("traceparent")
}

// shown returns an error's text for a span: as short as in a header, and valid UTF-8. Exporters
// refuse a whole batch of spans for one invalid text.
func shown(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), headers.MaxMessage)], "\uFFFD")
}

// linksOf returns the spans that an attempt follows: the producer's, from the record's own trace
// headers, and the last attempt's.
func linksOf(a *attempt) (links []trace.Link) {
	add := func(c propagation.TextMapCarrier) {
		ctx := propagation.TraceContext{}.Extract(context.Background(), c)
		if s := trace.SpanContextFromContext(ctx); s.IsValid() {
			links = append(links, trace.Link{SpanContext: s})
		}
	}
	if slices.ContainsFunc(a.rec().Headers, func(h kgo.RecordHeader) bool { return h.Key == "traceparent" }) {
		add(recordCarrier(a.rec().Headers))
	}
	if a.in.meta != nil && a.in.meta.TraceParent != "" {
		add(propagation.MapCarrier{"traceparent": a.in.meta.TraceParent})
	}
	return links
}
