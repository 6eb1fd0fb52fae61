package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sidingConsume does with siding what bareConsume does without. With
// telemetry the metrics are collected once a second meanwhile.
func sidingConsume(ctx context.Context, j job) (_ report, err error) {
	var m meter
	p := newProgress(j.Data, m.begin)
	handle := handler(j, p)
	cfg := sidingConfig(j)
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		handle(r)
		return nil
	}
	if j.Metrics || j.Spans {
		t := newTelemetry()
		t.wire(&cfg)
		if !j.Metrics {
			cfg.MeterProvider = nil
		}
		if !j.Spans {
			cfg.TracerProvider = nil
		}
		scraping, stop := context.WithCancel(ctx)
		scraped := make(chan error, 1)
		go func() { scraped <- t.scrape(scraping, time.Second) }()
		defer func() {
			stop()
			err = errors.Join(err, <-scraped)
		}()
	}
	return consume(ctx, cfg, p.done, func() report { return m.end(j.Data.records()) })
}
