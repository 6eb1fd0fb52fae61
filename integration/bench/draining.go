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
