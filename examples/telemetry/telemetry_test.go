package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

const (
	producer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" // a traceparent
	vendor   = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"                 // a tracestate
)

// telemetry is OpenTelemetry's SDK, in memory.
type telemetry struct {
	*testing.T
	spans   *tracetest.SpanRecorder
	tracers *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
	meters  *sdkmetric.MeterProvider
}

func newTelemetry(t *testing.T, opts ...sdktrace.TracerProviderOption) *telemetry {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	return &telemetry{
		T: t, spans: spans, reader: reader,
		tracers: sdktrace.NewTracerProvider(append(opts, sdktrace.WithSpanProcessor(spans))...),
		meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
	}
}

// config returns a consumer's configuration with the telemetry.
func (o *telemetry) config(handler consumer.Handler) consumer.Config {
	return consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Handler: handler,
		TracerProvider: o.tracers, MeterProvider: o.meters,
	}
}

// ended returns the spans by their start, and fails if one is open.
func (o *telemetry) ended() []sdktrace.ReadOnlySpan {
	o.Helper()
	started, ended := o.spans.Started(), o.spans.Ended()
	if len(started) != len(ended) {
		o.Fatalf("%d spans started, %d ended", len(started), len(ended))
	}
	slices.SortStableFunc(ended, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return ended
}

// outcomes returns the spans' tiers, outcomes and error classes.
func outcomes(spans []sdktrace.ReadOnlySpan) (all []string) {
	for _, s := range spans {
		all = append(all, strings.TrimSpace(strings.Join([]string{of(s, "siding.tier"), of(s, "siding.outcome"), of(s, "error.type")}, " ")))
	}
	return all
}

// of returns an attribute of a span as text.
func of(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	set := attribute.NewSet(s.Attributes()...)
	v, _ := set.Value(key)
	return v.String()
}

// series returns the values of a metric by their attributes, without the common ones. Of histograms
// it returns the number of measurements.
func (o *telemetry) series(name string) map[string]int64 {
	o.Helper()
	got := map[string]int64{}
	for _, m := range o.metrics() {
		if m.Name != name {
			continue
		}
		for _, p := range o.points(m) {
			var words []string
			for _, a := range p.set.ToSlice() {
				if key := string(a.Key); !strings.HasPrefix(key, "messaging.") {
					words = append(words, strings.TrimPrefix(key, "siding.")+"="+a.Value.String())
				}
			}
			got[strings.Join(words, " ")] += p.n
		}
	}
	return got
}

// point is a series of a metric: its sum, its value, or how many measurements it has.
type point struct {
	set attribute.Set
	n   int64
}

func (o *telemetry) points(m metricdata.Metrics) (all []point) {
	o.Helper()
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, p.Value})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, p.Value})
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all = append(all, point{p.Attributes, int64(p.Count)})
		}
	default:
		o.Fatalf("%s is a %T", m.Name, data)
	}
	return all
}

func (o *telemetry) want(name string, want map[string]int64) {
	o.Helper()
	if got := o.series(name); !maps.Equal(got, want) {
		o.Errorf("%s:\n got %v\nwant %v", name, got, want)
	}
}

// metrics returns what a reader would export now.
func (o *telemetry) metrics() (all []metricdata.Metrics) {
	o.Helper()
	var got metricdata.ResourceMetrics
	if err := o.reader.Collect(context.Background(), &got); err != nil {
		o.Fatal(err)
	}
	for _, scope := range got.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

// order returns a record with a producer's trace headers.
func order(value string) *kgo.Record {
	return &kgo.Record{Topic: "orders", Partition: 1, Key: []byte("customer-1"), Value: []byte(value), Headers: []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte(producer)}, {Key: "tracestate", Value: []byte(vendor)},
	}}
}

// virtually runs a test in virtual time, on a topic of two partitions, with an SDK of its own.
func virtually(t *testing.T, f func(*testing.T, *consumertest.Kafka, *telemetry)) {
	t.Helper()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		f(t, k, newTelemetry(t))
	})
}

// stop ends the consumer, so that all its spans exist.
func stop(t *testing.T, c *consumertest.Consumer) {
	t.Helper()
	must(t, c.Stop())
	synctest.Wait()
}

// busyOnce fails each record's first attempt.
func busyOnce(ctx context.Context, r *kgo.Record) error {
	if consumer.DeliveryOf(ctx, r).Attempt == 1 {
		return classify.Retryable(errBusy)
	}
	return nil
}

var errBusy = errors.New("the gateway is busy")

// minute is a policy with one tier.
var minute = consumer.Policy{Tiers: []time.Duration{time.Minute}, Jitter: -1}

// must ends the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
