package main

import (
	"context"
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
	// The members. The second one joins while the first one runs.
	first, second *running
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
	return trial(ctx, cfg, func(c *running) report {
		d.first = c
		return d.measure(cfg)
	})
}

// measure lets the second member join.
func (d *drainingRun) measure(cfg consumer.Config) report {
	c := d.first
	c.await(c.Ready())
	var m meter
	m.begin()
	c.await(after(time.Second)) // all lanes run
	begun, atBegin := time.Now(), d.counts()
	c.await(after(drainingBefore))
	before, atEnd := time.Since(begun), d.counts()
	c.do(func() (err error) {
		d.second, err = start(c.ctx, cfg)
		return err
	})
	d.until(func(lanes int) bool { return lanes > 0 })
	drain, atDrain := time.Now(), d.counts()
	d.until(func(lanes int) bool { return lanes == 0 })
	lasted, atLast := time.Since(drain), d.counts()
	lanes := c.Health().Lanes
	c.do(func() error {
		switch {
		case lasted < drainingLasts:
			return fmt.Errorf("lanes drained for %v, want %v at least", lasted, drainingLasts)
		case len(lanes) == 0 || len(lanes) == len(d.handled):
			return fmt.Errorf("the first member keeps %d of %d lanes", len(lanes), len(d.handled))
		}
		return nil
	})
	rep, ordinary := m.end(0), int64(0)
	for _, l := range lanes {
		ordinary += atEnd[l.Partition] - atBegin[l.Partition]
		rep.Records += atLast[l.Partition] - atDrain[l.Partition]
	}
	rep.Seconds, rep.Before = lasted.Seconds(), float64(ordinary)/before.Seconds()
	if d.second != nil {
		if err := d.second.stop(); err != nil {
			c.do(func() error { return err })
		}
	}
	return rep
}

func (d *drainingRun) counts() []int64 {
	all := make([]int64, len(d.handled))
	for p := range all {
		all[p] = d.handled[p].Load()
	}
	return all
}

// until waits for a number of lanes that drain, and lets the handlers know of these.
func (d *drainingRun) until(is func(lanes int) bool) {
	d.first.poll(time.Millisecond, func() (bool, error) {
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
