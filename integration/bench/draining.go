package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// The rebalance of the bench of kept lanes: a second member joins, and the lanes that go to it
// drain for as long as their handlers run.
const (
	drainingRecords = 200_000
	drainingNap     = 20 * time.Millisecond // of a handler
	drainingBefore  = 5 * time.Second       // that are measured before the rebalance
	drainingLasts   = 5 * time.Second       // of the handlers of a lane that drains
)

// drainingRun counts what is handled of each partition.
type drainingRun struct {
	handled  []atomic.Int64 // by partition
	draining []atomic.Bool
	first    *running
}

// sidingDraining runs a member that reads all partitions, and then a second one. It measures the
// lanes that the first one keeps, before the rebalance and while the others drain.
func sidingDraining(ctx context.Context, j job) (report, error) {
	n := len(j.Data.Ends)
	d := drainingRun{handled: make([]atomic.Int64, n), draining: make([]atomic.Bool, n)}
	cfg := sidingConfig(j)
	cfg.Naming, cfg.Order, cfg.Concurrency = groupNaming, consumer.OrderNone, j.Slots
	cfg.DrainTimeout, cfg.Policy.HandlerTimeout = 2*drainingLasts, -1
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		time.Sleep(drainingNap)
		if d.draining[r.Partition].Load() {
			time.Sleep(drainingLasts)
		}
		d.handled[r.Partition].Add(1)
		return nil
	}
	return trial(ctx, cfg, func(ctx context.Context, c *running) (report, error) {
		d.first = c
		if err := c.await(ctx, c.Ready()); err != nil {
			return report{}, err
		}
		return d.measure(ctx, cfg)
	})
}

// measure lets the second member join.
func (d *drainingRun) measure(ctx context.Context, cfg consumer.Config) (rep report, err error) {
	var m meter
	m.begin()
	if err := d.first.await(ctx, after(time.Second)); err != nil { // all lanes run
		return report{}, err
	}
	begun, atBegin := time.Now(), d.counts()
	if err := d.first.await(ctx, after(drainingBefore)); err != nil {
		return report{}, err
	}
	before, atEnd := time.Since(begun), d.counts()
	second, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, second.stop()) }()
	if err := d.until(ctx, func(lanes int) bool { return lanes > 0 }); err != nil {
		return report{}, err
	}
	drain, atDrain := time.Now(), d.counts()
	if err := d.until(ctx, func(lanes int) bool { return lanes == 0 }); err != nil {
		return report{}, err
	}
	lasted, atLast := time.Since(drain), d.counts()
	if lasted < drainingLasts {
		return report{}, fmt.Errorf("lanes drained for %v, want %v at least", lasted, drainingLasts)
	}
	lanes := d.first.Health().Lanes
	if len(lanes) == 0 || len(lanes) == len(d.handled) {
		return report{}, fmt.Errorf("the first member keeps %d of %d lanes", len(lanes), len(d.handled))
	}
	var ordinary int64
	rep = m.end(0)
	for _, l := range lanes {
		ordinary += atEnd[l.Partition] - atBegin[l.Partition]
		rep.Records += atLast[l.Partition] - atDrain[l.Partition]
	}
	rep.Seconds, rep.Before = lasted.Seconds(), float64(ordinary)/before.Seconds()
	return rep, nil
}

func (d *drainingRun) counts() []int64 {
	all := make([]int64, len(d.handled))
	for p := range all {
		all[p] = d.handled[p].Load()
	}
	return all
}

// until waits for a number of lanes that drain, and lets the handlers know of these.
func (d *drainingRun) until(ctx context.Context, is func(lanes int) bool) error {
	return d.first.poll(ctx, time.Millisecond, func() (bool, error) {
		n := 0
		for _, l := range d.first.Health().Lanes {
			if l.State == consumer.StateDraining {
				d.draining[l.Partition].Store(true)
				n++
			}
		}
		return is(n), nil
	})
}
