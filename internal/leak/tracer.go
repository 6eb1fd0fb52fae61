package leak

import (
	"context"
	"crypto/rand"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// TracerProvider returns a provider whose spans show the finder their names, attributes, events,
// links and states. All of them are sampled.
func (f *Finder) TracerProvider() trace.TracerProvider { return tracers{to: f} }

type tracers struct {
	noop.TracerProvider
	to *Finder
}

func (p tracers) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	c := trace.NewTracerConfig(opts...)
	with := c.InstrumentationAttributes()
	show(p.to, "span", name, c.InstrumentationVersion(), attributes(with.ToSlice()))
	return tracer{of: p}
}

type tracer struct {
	noop.Tracer
	of tracers
}

func (t tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(opts...)
	var trc trace.TraceID
	var id trace.SpanID
	_, _ = rand.Read(trc[:]) // never fails
	_, _ = rand.Read(id[:])
	s := span{of: t.of, is: trace.NewSpanContext(trace.SpanContextConfig{TraceID: trc, SpanID: id, TraceFlags: trace.FlagsSampled})}
	s.show(name, attributes(c.Attributes()))
	for _, l := range c.Links() {
		s.AddLink(l)
	}
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span
	of tracers
	is trace.SpanContext
}

func (s span) show(texts ...string) { show(s.of.to, "span", texts...) }

func (s span) SpanContext() trace.SpanContext { return s.is }

func (s span) IsRecording() bool { return true }

func (s span) TracerProvider() trace.TracerProvider { return s.of }

func (s span) SetName(name string) { s.show(name) }

func (s span) SetStatus(_ codes.Code, text string) { s.show(text) }

func (s span) SetAttributes(as ...attribute.KeyValue) { s.show(attributes(as)) }

func (s span) AddLink(l trace.Link) {
	s.show(attributes(l.Attributes), l.SpanContext.TraceState().String())
}

func (s span) AddEvent(name string, opts ...trace.EventOption) {
	c := trace.NewEventConfig(opts...)
	s.show(name, attributes(c.Attributes()))
}

func (s span) RecordError(err error, opts ...trace.EventOption) {
	s.AddEvent(fmt.Sprintf("%v %+v", err, err), opts...)
}

// attributes is their keys and values as text.
func attributes(as []attribute.KeyValue) string {
	text := ""
	for _, a := range as {
		text += fmt.Sprintf("%s=%s ", a.Key, a.Value.String())
	}
	return text
}

func show(to *Finder, kind string, texts ...string) {
	for _, text := range texts {
		if text != "" {
			to.Show(kind, text)
		}
	}
}
