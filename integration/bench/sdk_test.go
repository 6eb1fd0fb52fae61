package main

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// BenchmarkSDK measures the cost of OpenTelemetry's SDK for a record whose span is sampled out: the
// least cost of healthy-metrics, with the calls and the attributes of siding and nothing around
// them.
func BenchmarkSDK(b *testing.B) {
	o := newTelemetry()
	common := []attribute.KeyValue{
		attribute.String("messaging.system", "kafka"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", "orders"),
		attribute.String("messaging.consumer.group.name", "billing"),
	}
	kind := trace.WithSpanKind(trace.SpanKindConsumer)
	attributes := trace.WithAttributes(append(common[:4:4],
		attribute.String("messaging.operation.type", "process"), attribute.String("messaging.destination.partition.id", "3"))...)

	tracer := o.tracers.Tracer("bench")
	for _, span := range []struct {
		name string
		opts []trace.SpanStartOption
	}{
		{"span", []trace.SpanStartOption{kind, attributes}},
		{"span-without-attributes", []trace.SpanStartOption{kind}},
		{"span-as-new-root", []trace.SpanStartOption{kind, attributes, trace.WithNewRoot()}},
	} {
		b.Run(span.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, s := tracer.Start(context.Background(), "process orders", span.opts...)
				s.End()
			}
		})
	}

	sampledOut, _ := tracer.Start(context.Background(), "process orders")
	for _, set := range []struct {
		name       string
		attributes []attribute.KeyValue
	}{
		{"duration", common},
		{"duration-of-a-retry", append(common[:4:4], attribute.String("siding.tier", "1m"), attribute.String("siding.outcome", "retried"))},
		{"duration-without-attributes", nil},
	} {
		b.Run(set.name, func(b *testing.B) {
			h, err := o.meters.Meter(set.name).Float64Histogram("messaging.process.duration",
				metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
			if err != nil {
				b.Fatal(err)
			}
			opts := []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(set.attributes...))}
			b.ReportAllocs()
			for b.Loop() {
				h.Record(sampledOut, 5e-6, opts...)
			}
		})
	}

	b.Run("clock", func(b *testing.B) { // start and end of a run
		base := time.Now()
		for b.Loop() {
			began := time.Since(base)
			_ = time.Since(base) - began
		}
	})
}
