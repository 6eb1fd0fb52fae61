package work

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Handler is what each program calls with the value of each record, once for each attempt. It
// returns an error if the record fails.
type Handler func(ctx context.Context, value []byte) error

// ErrUnavailable is how records fail.
var ErrUnavailable = errors.New("service unavailable")

// Work is the handler of a job, and what it has seen. Handlers run concurrently.
type Work struct {
	// Ready is closed when one record of each partition was handled, before those that count.
	Ready chan struct{}
	// Handled is closed when each record that does not fail was handled.
	Handled chan struct{}

	job      Job
	meter    meter
	warm     atomic.Int64 // partitions that were not heard of
	left     atomic.Int64 // healthy records that were not handled
	seen     []atomic.Bool
	late     []atomic.Int64 // by record, in ns
	again    atomic.Int64
	disorder atomic.Int64
}

// New prepares the work of a job.
func New(j Job) *Work {
	w := &Work{job: j, Ready: make(chan struct{}), Handled: make(chan struct{}), seen: make([]atomic.Bool, j.Records)}
	w.warm.Store(int64(j.Partitions))
	w.left.Store(int64(j.Records - j.Failing()))
	if w.left.Load() == 0 {
		close(w.Handled)
	}
	if j.Rate > 0 {
		w.late = make([]atomic.Int64, j.Records)
	}
	return w
}

// Handle handles a record: it is a [Handler].
func (w *Work) Handle(ctx context.Context, value []byte) error {
	i := Index(value)
	if i >= w.job.Records {
		if w.warm.Add(-1) == 0 {
			close(w.Ready)
		}
		return nil
	}
	w.meter.begin()
	if w.job.Fails(i) {
		return ErrUnavailable
	}
	if w.late != nil {
		w.late[i].CompareAndSwap(0, int64(time.Since(due(value))))
	}
	if k := w.job.Keys; k > 0 && i >= k && !w.seen[i-k].Load() {
		w.disorder.Add(1)
	}
	if w.job.Nap > 0 {
		select {
		case <-time.After(w.job.nap(i)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if !w.seen[i].CompareAndSwap(false, true) {
		w.again.Add(1)
	} else if w.left.Add(-1) == 0 {
		close(w.Handled)
	}
	return nil
}

// Seconds are those since the first record, on the clock and of CPU.
func (w *Work) Seconds() (clock, cpu float64) { return w.meter.seconds() }

// Report is about the work up to now.
func (w *Work) Report() (r Report) {
	r.Seconds, r.CPU = w.meter.seconds()
	r.Again, r.Disorder = int(w.again.Load()), int(w.disorder.Load())
	var late []int64
	for i := range w.seen {
		if w.seen[i].Load() {
			r.Handled++
			if w.late != nil {
				late = append(late, w.late[i].Load())
			}
		}
	}
	r.P99 = float64(percentile(late, 99)) / float64(time.Millisecond)
	return r
}
