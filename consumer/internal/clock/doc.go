// Package clock is a coarse clock for the start times of attempts. A reading is never ahead of the
// time, and lags by at most a [Tick] and the scheduler's delay. The clock ticks only while workers
// run.
package clock
