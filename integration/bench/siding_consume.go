package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sidingConsume does with siding what bareConsume does without.
func sidingConsume(ctx context.Context, j job) (report, error) {
	var m meter
	p := newProgress(j.Data, m.begin)
	handle := handler(j, p)
	cfg := sidingConfig(j)
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		handle(r)
		return nil
	}
	return consume(ctx, cfg, p.done, func() report { return m.end(j.Data.records()) })
}
