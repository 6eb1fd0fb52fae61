package main

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// handler returns what both sides call for each record: nothing but telling
// the progress, after the CPU time that the job asks for. It is a variable
// to its callers, so nothing of it is inlined.
func handler(j job, p *progress) func(*kgo.Record) {
	if j.Spin == 0 {
		return p.see
	}
	return func(r *kgo.Record) {
		spin(j.Spin)
		p.see(r)
	}
}

// spin burns CPU for about d.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// nap is the time that record i's handler sleeps in the bench of keys: 0 to
// 5 ms, evenly spread and the same in each run.
func nap(i int) time.Duration {
	// Knuth's multiplicative hash: neighbours, and so the records of one
	// key, get times far apart.
	return time.Duration(uint32(i)*2654435761>>16) * (5 * time.Millisecond) / (1 << 16)
}
