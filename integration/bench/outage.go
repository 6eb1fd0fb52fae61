package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
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
		all = append(all, arm{name: strconv.Itoa(share), job: of(lasts), warm: of(outageWarm), run: offered})
	}
	return all, nil
}

// outageLines are the figures of the incidents. Where all records fail, none is healthy.
func outageLines() (all []line) {
	for _, share := range outageShares {
		name := strconv.Itoa(share)
		of := func(of func(outageCounts) float64) func(map[string]report) float64 {
			return figure(name, func(r report) float64 { return of(r.Outage) })
		}
		all = append(all,
			line{name: "outage-" + name + "-dead", unit: "dead letters", goal: atMost(0), of: of(func(o outageCounts) float64 { return float64(o.Dead) }), worst: true},
			line{
				name: "outage-" + name + "-load", unit: "x", goal: atMost(1.25), of: of(func(o outageCounts) float64 { return float64(o.Calls) / float64(o.Ordinary) }), worst: true,
				absolute: each("calls", func(r report) float64 { return float64(r.Outage.Calls) }, name),
			},
			line{name: "outage-" + name + "-recovery", unit: "s", goal: atMost(30), of: of(func(o outageCounts) float64 { return o.Recovery }), worst: true})
		if share < 100 {
			all = append(all, line{name: "outage-" + name + "-wait", unit: "s", goal: atMost(1), of: of(func(o outageCounts) float64 { return o.Wait }), worst: true})
		}
	}
	return all
}
