package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// The incidents of the bench of outages: records at a steady rate, and a handler that fails with
// all of some tenants' for a while.
const (
	outageRate   = 200 // records a second
	outageBefore = 10 * time.Second
	outageLasts  = time.Minute
	outageAfter  = 30 * time.Second
	outageWarm   = time.Second
)

// outageShares are the shares of the records that fail, in %. Record i is of tenant i%10.
var outageShares = []int{100, 90, 60, 30}

// outageTiers end within the bench; the default ones with five minutes.
var outageTiers = []time.Duration{5 * time.Second, 30 * time.Second, time.Minute}

// outageArms has an incident for each share. SIDING_OUTAGE=10m sets how long it lasts.
func outageArms(context.Context, *rig) (all []arm, err error) {
	lasts := outageLasts
	if text := os.Getenv("SIDING_OUTAGE"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("SIDING_OUTAGE: %w", err)
		}
	}
	for _, share := range outageShares {
		of := func(down time.Duration) job {
			return job{
				Program: "siding-outage", Rate: outageRate, Down: down, Share: share,
				Offered: outageRate * int((outageBefore+down+outageAfter)/time.Second),
			}
		}
		all = append(all, arm{name: strconv.Itoa(share), job: of(lasts), warm: of(outageWarm), run: (*turn).paced})
	}
	return all, nil
}

// outageLines are the figures of the incidents. Where all records fail, none is healthy.
func outageLines() (all []line) {
	for _, share := range outageShares {
		name := strconv.Itoa(share)
		promise := func(what, unit string, goal goal, of func(outageCounts) float64) line {
			return quantity{unit, func(r report) float64 { return of(r.Outage) }}.alone("outage-"+name+"-"+what, goal, name).always()
		}
		load := promise("load", "x", atMost(1.25), func(o outageCounts) float64 { return float64(o.Calls) / float64(o.Ordinary) })
		load.absolute = quantity{"calls", func(r report) float64 { return float64(r.Outage.Calls) }}.each(name)
		all = append(all,
			promise("dead", "dead letters", atMost(0), func(o outageCounts) float64 { return float64(o.Dead) }),
			load,
			promise("recovery", "s", atMost(30), func(o outageCounts) float64 { return o.Recovery }))
		if share < 100 {
			all = append(all, promise("wait", "s", atMost(1), func(o outageCounts) float64 { return o.Wait }))
		}
	}
	return all
}

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
		all.record(i, 1)
		if i >= (from+to)/2 && i < to {
			late.record(i, 1)
		}
		return nil
	}
	return paced(ctx, cfg, &m, j, func(c *running) report {
		c.await(after(outageBefore))
		o.down.Store(true)
		c.await(after(j.Down))
		o.down.Store(false)
		end := time.Now()
		counts := outageCounts{Calls: o.calls.Load(), Ordinary: int64(to - from)}
		c.await(late.done)
		counts.Recovery = time.Since(end).Seconds()
		c.await(all.done)
		counts.Dead, counts.Wait = o.dead.Load(), time.Duration(o.wait.Load()).Seconds()
		rep := m.end(int64(j.Offered))
		rep.Outage = counts
		return rep
	})
}
