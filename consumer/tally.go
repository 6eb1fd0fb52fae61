package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// tally keeps the durations of a feed's handled runs until they are recorded, many at a time. All workers write to the same
// histogram; recorded between two runs of a handler, each measurement would fetch its memory from another CPU, and that costs
// more than the measurement.
//
// The worker that has the feed adds to it, and empties it whenever the tracker is told. In between the watchdog records what
// is there, so that a slow handler does not hide for long what ran before it.
type tally struct {
	n    atomic.Int32 // of runs
	runs [unitRecords]timed

	mu       sync.Mutex // of who records
	recorded int32      // of n
}

// timed is a run that was handled, with the context that its handler had.
type timed struct {
	ctx  context.Context
	took time.Duration
}

// keep adds a run. A unit has no more of them than there is room for.
func (y *tally) keep(ctx context.Context, took time.Duration) {
	n := y.n.Load()
	y.runs[n] = timed{ctx, took}
	y.n.Store(n + 1)
}

// empty records all that is kept and starts over.
func (y *tally) empty(t *telemetry, sig *signals) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.record(t, sig)
	y.recorded = 0
	y.n.Store(0)
}

// record records what was not recorded yet; the caller holds the lock.
func (y *tally) record(t *telemetry, sig *signals) {
	for n := y.n.Load(); y.recorded < n; y.recorded++ {
		run := &y.runs[y.recorded]
		t.duration.Record(run.ctx, run.took.Seconds(), sig.handled...)
		run.ctx = nil // it may be large
	}
}

// keepsTally is the feed's tally, made at the first call. Only the worker that has the feed calls it.
func (f *feed) keepsTally() *tally {
	y := f.tally.Load()
	if y == nil {
		y = new(tally)
		f.tally.Store(y)
	}
	return y
}

// recordKept is called while a worker may have the feed.
func (f *feed) recordKept() {
	if y := f.tally.Load(); y != nil && y.n.Load() > 0 {
		y.mu.Lock()
		defer y.mu.Unlock()
		y.record(f.lane.c.telemetry, &f.sig)
	}
}
