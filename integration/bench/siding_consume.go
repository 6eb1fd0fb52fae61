package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// sidingConsume does with siding what bareConsume does without. With
// telemetry the metrics are collected once a second meanwhile.
func sidingConsume(ctx context.Context, j job) (report, error) {
	var m meter
	p := newProgress(j.Data, m.begin)
	handle := handler(j, p)
	cfg := sidingConfig(j)
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		handle(r)
		return nil
	}
	var rep report
	work := func() (err error) {
		rep, err = consume(ctx, cfg, p.done, func() report { return m.end(j.Data.records()) })
		return err
	}
	if !j.Metrics && !j.Spans {
		err := work()
		return rep, err
	}
	t := newTelemetry()
	if j.Metrics {
		cfg.MeterProvider = t.meters
	}
	if j.Spans {
		cfg.TracerProvider = t.tracers
	}
	// A reader of metrics does that too, only less often.
	err := meanwhile(ctx, time.Second, func(ctx context.Context) error { _, err := t.sums(ctx); return err }, work)
	return rep, err
}

// sidingKeyed does with each key in order what barePool does in no order.
func sidingKeyed(ctx context.Context, j job) (report, error) {
	var (
		m     meter
		total = j.Data.records()
		left  atomic.Int64
		done  = make(chan struct{})
	)
	left.Store(total)
	cfg := sidingConfig(j)
	cfg.Order = consumer.OrderKey
	cfg.Concurrency = j.Slots
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		m.begin()
		time.Sleep(nap(index(r)))
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}
	return consume(ctx, cfg, done, func() report { return m.end(total) })
}
