// Package clock is a coarse clock for the start times of attempts. It promises a reading that is
// never ahead of the time, and behind it by at most a [Tick] and the scheduler's delay. It ticks
// only while workers run. It knows nothing of what the workers do.
package clock
