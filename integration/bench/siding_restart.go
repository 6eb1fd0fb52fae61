package main

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sidingRestart handles the topic to its end, and measures the time from its start until then. With
// After it ends once it has handled so many records: it is killed if the job says so.
func sidingRestart(ctx context.Context, j job) (report, error) {
	var m meter
	m.begin()
	p := newProgress(j.Data, func() {})
	enough := make(chan struct{})
	var handled atomic.Int64
	cfg := sidingConfig(j)
	cfg.Naming, cfg.Concurrency = groupNaming, j.Slots
	cfg.Kafka = append(cfg.Kafka, kgo.InstanceID(restartMember))
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		time.Sleep(restartNap)
		p.see(r)
		if handled.Add(1) == int64(j.After) {
			if j.Kill {
				return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			}
			close(enough)
		}
		return nil
	}
	end := p.done
	if j.After > 0 {
		end = enough
	}
	return consume(ctx, cfg, end, func() report { return m.end(handled.Load()) })
}
