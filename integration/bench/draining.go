package main

import "time"

// The rebalance of the bench of kept lanes: a second member joins, and the lanes that go to it
// drain for as long as their handlers run.
const (
	drainingRecords = 200_000
	drainingNap     = 20 * time.Millisecond // of a handler
	drainingBefore  = 5 * time.Second       // that are measured before the rebalance
	drainingLasts   = 5 * time.Second       // of the handlers of a lane that drains
)

// kept is the rate of the kept lanes while others drain, by their rate before.
func (r report) kept() float64 { return r.rate() / r.Before }

// keptRates are the rates of the kept lanes, while others drain and before.
func keptRates(round map[string]report) []absolute {
	r := round["siding"]
	return []absolute{{"during", r.rate(), "records/s"}, {"before", r.Before, "records/s"}}
}
