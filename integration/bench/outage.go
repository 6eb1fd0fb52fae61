package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// The incident of the bench of outages: records at a steady rate, and a handler whose every call
// fails for a while.
const (
	outageRate   = 200 // records a second
	outageBefore = 20 * time.Second
	outageLasts  = time.Minute
	outageAfter  = 30 * time.Second
	outageWarm   = 5 * time.Second
)

// outageTiers end within the bench; the default ones with five minutes.
var outageTiers = []time.Duration{5 * time.Second, 30 * time.Second, time.Minute}

// outageCounts are what an outage did.
type outageCounts struct {
	Calls    int64 // while it lasted, and
	Ordinary int64 // the records offered in that time
	Parked   int64 // copies that went to tiers, and
	Formula  int64 // how many may
	Dead     int64
	// Recovery is the time from the end of the outage until all records of its second half are
	// handled, in seconds.
	Recovery float64
}

// outageBench runs the incident. SIDING_OUTAGE=10m sets how long it lasts.
func outageBench(_ context.Context, r *rig) ([]arm, error) {
	lasts := outageLasts
	if text := os.Getenv("SIDING_OUTAGE"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("SIDING_OUTAGE: %w", err)
		}
	}
	return []arm{{"siding", func(ctx context.Context, round int) (report, error) {
		j := job{Rate: outageRate, Down: lasts}
		if round == 0 {
			j.Down = outageWarm
		}
		j.Offered = outageRate * int((outageBefore+j.Down+outageAfter)/time.Second)
		const partitions = 8
		topic, err := r.topic(ctx, fmt.Sprintf("outage-%d", round), partitions)
		if err != nil {
			return report{}, err
		}
		j.Program, j.Group = "siding-outage", r.group("outage", round)
		j.Data = data{Topic: topic, Ends: make([]int64, partitions)}
		rep, err := r.run(ctx, "siding", j)
		if err != nil {
			return report{}, err
		}
		return rep, r.deleteTopics(ctx, topic)
	}}}, nil
}

// outages is a figure of the outage.
func outages(of func(outageCounts) float64) func(map[string]report) float64 {
	return sidings(func(r report) float64 { return of(r.Outage) })
}
