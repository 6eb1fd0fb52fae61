package main

import "time"

// A pace spreads records evenly over time: record i is due i/rate seconds
// after the start.
type pace struct {
	start time.Time
	rate  int // records a second
}

// at is when record i is due.
func (p pace) at(i int) time.Time {
	// In two parts: i seconds in nanoseconds would overflow early.
	whole, rest := i/p.rate, i%p.rate
	return p.start.Add(time.Duration(whole)*time.Second + time.Duration(rest)*time.Second/time.Duration(p.rate))
}
