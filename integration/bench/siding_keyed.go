package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

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
