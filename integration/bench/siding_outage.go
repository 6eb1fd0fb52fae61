package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// outageRun counts what the consumer does while the handler fails, and after it.
type outageRun struct {
	down        atomic.Bool
	calls, dead atomic.Int64
	wait        atomic.Int64 // nanoseconds
}

// OnDeadLettered counts a dead letter.
func (o *outageRun) OnDeadLettered(consumer.Routed) { o.dead.Add(1) }

// sidingOutage handles records that are offered at the job's rate. After outageBefore, calls of the
// handler with the job's share of the records fail for as long as the job says.
func sidingOutage(ctx context.Context, j job) (report, error) {
	var o outageRun
	var m meter
	from, to := j.Rate*int(outageBefore/time.Second), j.Rate*int((outageBefore+j.Down)/time.Second)
	all, late := newStopwatch(j.Offered, j.Offered), newStopwatch(j.Offered, to-(from+to)/2)
	cfg := sidingConfig(j)
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = outageTiers
	cfg.Hooks = []consumer.Hook{&o}
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		time.Sleep(poisonNap)
		i := index(r)
		fails := 10*(i%10) < j.Share
		if o.down.Load() {
			if o.calls.Add(1); fails {
				return errUnavailable
			}
		}
		if !fails && i >= from && i < to {
			wait := int64(time.Since(stamp(r)))
			for most := o.wait.Load(); wait > most && !o.wait.CompareAndSwap(most, wait); most = o.wait.Load() {
			}
		}
		all.note(i, 1)
		if i >= (from+to)/2 && i < to {
			late.note(i, 1)
		}
		return nil
	}
	return trial(ctx, cfg, func(ctx context.Context, c *running) (report, error) {
		var is outageCounts
		if err := c.await(ctx, c.Ready()); err != nil {
			return report{}, err
		}
		m.begin()
		c.offer(ctx, j)
		if err := c.await(ctx, after(outageBefore)); err != nil {
			return report{}, err
		}
		o.down.Store(true)
		if err := c.await(ctx, after(j.Down)); err != nil {
			return report{}, err
		}
		o.down.Store(false)
		end := time.Now()
		is.Calls, is.Ordinary = o.calls.Load(), int64(to-from)
		if err := c.await(ctx, late.done); err != nil {
			return report{}, err
		}
		is.Recovery = time.Since(end).Seconds()
		if err := c.await(ctx, all.done); err != nil {
			return report{}, err
		}
		is.Dead, is.Wait = o.dead.Load(), time.Duration(o.wait.Load()).Seconds()
		rep := m.end(int64(j.Offered))
		rep.Outage = is
		return rep, nil
	})
}
