package main

import (
	"slices"
	"sync/atomic"
	"time"
)

// A stopwatch keeps the first time reported for each record, and detects when it has all. Handlers
// report times concurrently.
type stopwatch struct {
	times []atomic.Int64 // by record: nanoseconds, 0 for none yet
	left  atomic.Int64
	done  chan struct{} // closed when each record has its time
}

// newStopwatch waits for so many of the records that are numbered up to n.
func newStopwatch(n, records int) *stopwatch {
	s := &stopwatch{times: make([]atomic.Int64, n), done: make(chan struct{})}
	s.left.Store(int64(records))
	if records == 0 {
		close(s.done)
	}
	return s
}

// record takes a time. A record can come twice; its first time counts.
func (s *stopwatch) record(i int, d time.Duration) {
	if d == 0 {
		d = 1 // a nanosecond does not matter, and 0 means none
	}
	if s.times[i].CompareAndSwap(0, int64(d)) && s.left.Add(-1) == 0 {
		close(s.done)
	}
}

// A spread describes the distribution of the times, in milliseconds.
type spread struct {
	Records       int
	P50, P99, Max float64
	Early         int // below 0
}

// spread is about the records numbered from the first to before the last.
func (s *stopwatch) spread(first, last int) spread {
	var times []time.Duration
	early := 0
	for i := first; i < last; i++ {
		if t := time.Duration(s.times[i].Load()); t != 0 {
			times = append(times, t)
			if t < 0 {
				early++
			}
		}
	}
	slices.Sort(times)
	ms := func(share float64) float64 { return float64(percentile(times, share)) / float64(time.Millisecond) }
	return spread{Records: len(times), P50: ms(0.50), P99: ms(0.99), Max: ms(1), Early: early}
}

// percentile is the smallest of the sorted values that at least the share of
// them does not exceed (nearest rank), and 0 for none.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share * float64(len(sorted)))
	if float64(rank) < share*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}
