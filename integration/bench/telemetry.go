package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sidingkafka/siding/consumer"
)

// telemetry is the OpenTelemetry SDK as most services run it: metrics are on
// and collected, spans are sampled out.
type telemetry struct {
	reader  *sdkmetric.ManualReader
	meters  *sdkmetric.MeterProvider
	tracers *sdktrace.TracerProvider
}

func newTelemetry() *telemetry {
	reader := sdkmetric.NewManualReader()
	return &telemetry{
		reader:  reader,
		meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		tracers: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
	}
}

func (t *telemetry) wire(cfg *consumer.Config) {
	cfg.MeterProvider, cfg.TracerProvider = t.meters, t.tracers
}

// meanwhile calls look once in the interval while the work is done, and waits for its last call.
func meanwhile(ctx context.Context, interval time.Duration, look func(context.Context) error, work func() error) error {
	looking, stop := context.WithCancel(ctx)
	looked := make(chan error, 1)
	go func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		var err error
		for err == nil && looking.Err() == nil {
			select {
			case <-looking.Done():
			case <-tick.C:
				if err = look(looking); looking.Err() != nil {
					err = nil
				}
			}
		}
		looked <- err
	}()
	err := work()
	stop()
	return errors.Join(err, <-looked)
}

// sums collects the whole-numbered sums by name, each over all its
// attributes. One that does not exist is 0.
func (t *telemetry) sums(ctx context.Context) (map[string]int64, error) {
	var all metricdata.ResourceMetrics
	if err := t.reader.Collect(ctx, &all); err != nil {
		return nil, fmt.Errorf("collecting metrics: %w", err)
	}
	sums := make(map[string]int64)
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if points, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range points.DataPoints {
					sums[m.Name] += p.Value
				}
			}
		}
	}
	return sums, nil
}
