package main

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

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

// see is called for each record, in order within a partition.
func (p *progress) see(r *kgo.Record) {
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
