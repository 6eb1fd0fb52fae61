package main

import (
	"context"
	"time"
)

// The rebalance of the bench of kept lanes: a second member joins, and the lanes that go to it
// drain for as long as their handlers run.
const (
	drainingRecords = 200_000
	drainingNap     = 20 * time.Millisecond // of a handler
	drainingBefore  = 5 * time.Second       // that are measured before the rebalance
	drainingLasts   = 5 * time.Second       // of the handlers of a lane that drains
)

// drainingBench compares the lanes that a member keeps with themselves before the rebalance.
func drainingBench(ctx context.Context, r *rig) ([]arm, error) {
	d, err := r.fill(ctx, "src", shape{partitions: 8, records: drainingRecords, block: 100})
	if err != nil {
		return nil, err
	}
	return []arm{{"siding", func(ctx context.Context, round int) (report, error) {
		return r.run(ctx, "siding", job{Program: "siding-draining", Data: d, Group: r.group("siding", round), Slots: 64})
	}}}, nil
}

// kept is the rate of the kept lanes while others drain, by their rate before.
func (r report) kept() float64 { return r.rate() / r.Before }

// keptRates are the rates of the kept lanes, while others drain and before.
func keptRates(round map[string]report) []absolute {
	r := round["siding"]
	return []absolute{{"during", r.rate(), "records/s"}, {"before", r.Before, "records/s"}}
}
