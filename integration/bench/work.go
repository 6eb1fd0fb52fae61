package main

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// handler returns what both sides call for each record: nothing but reporting
// the progress, after the CPU time that the job asks for. It is a variable
// to its callers, so nothing of it is inlined.
func handler(j job, p *progress) func(*kgo.Record) {
	if j.Spin == 0 {
		return p.observe
	}
	return func(r *kgo.Record) {
		spin(j.Spin)
		p.observe(r)
	}
}

// spin burns CPU for about d.
func spin(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// nap is the time that record i's handler sleeps in a bench of keys: 0 to the longest, evenly
// spread and the same in each run.
func nap(i int, longest time.Duration) time.Duration {
	// Knuth's multiplicative hash: neighbours, and so the records of one
	// key, get times far apart.
	return time.Duration(uint32(i)*2654435761>>16) * longest / (1 << 16)
}

// A progress detects that a topic has been handled from its first record to its last. It costs one
// comparison a record, so that handlers that use it still count as empty.
type progress struct {
	begin func() // called at the first record of each partition
	done  chan struct{}
	last  []int64
	ended []atomic.Bool
	left  atomic.Int64
}

func newProgress(d data, begin func()) *progress {
	p := &progress{
		begin: begin,
		done:  make(chan struct{}),
		last:  make([]int64, len(d.Ends)),
		ended: make([]atomic.Bool, len(d.Ends)),
	}
	for i, end := range d.Ends {
		p.last[i] = end - 1
		if end > 0 {
			p.left.Add(1)
		} else {
			p.ended[i].Store(true)
		}
	}
	return p
}

// observe is called for each record, in order within a partition.
func (p *progress) observe(r *kgo.Record) {
	if r.Offset == 0 || r.Offset == p.last[r.Partition] {
		p.edge(r)
	}
}

func (p *progress) edge(r *kgo.Record) {
	if r.Offset == 0 {
		p.begin()
	}
	// A record can come twice; a partition ends once.
	if r.Offset == p.last[r.Partition] && p.ended[r.Partition].CompareAndSwap(false, true) && p.left.Add(-1) == 0 {
		close(p.done)
	}
}

// A crowd counts the handlers that run at a time.
type crowd struct{ now, most atomic.Int64 }

func (c *crowd) enter() {
	for n, most := c.now.Add(1), c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); {
		most = c.most.Load()
	}
}

func (c *crowd) leave() { c.now.Add(-1) }
