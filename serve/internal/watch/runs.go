package watch

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// Runs are the runs of a topic, as its ledger had them when it was last read. They are safe for
// concurrent use.
type Runs struct {
	index *letterindex.Index
	beats observations // by the run's id

	mu     sync.Mutex
	all    []redrive.Outcome
	broken error // runs that cannot be read; nil if all can
}

// keep keeps the runs of the index, in the order in which this server observed them: the clocks by
// which they began may be wrong. They decide about those that it observed at once. Of a run that
// was looked up after the index had read the ledger, the newer state stays.
func (r *Runs) keep(runs []redrive.Outcome, broken error) {
	runs = slices.Clone(runs) // they are the index's
	r.mu.Lock()
	defer r.mu.Unlock()
	order := map[string]int{}
	for i := range r.all {
		order[r.all[i].ID] = i - len(r.all)
	}
	for i := range runs {
		if at, known := order[runs[i].ID]; known && Newer(&r.all[at+len(r.all)], &runs[i]) {
			runs[i] = r.all[at+len(r.all)]
		}
	}
	slices.SortStableFunc(runs, func(a, b redrive.Outcome) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	r.all, r.broken = runs, broken
	for i := range runs {
		r.beat(&runs[i])
	}
}

// beat keeps a new heartbeat of a run, and returns when it came.
func (r *Runs) beat(o *redrive.Outcome) time.Time {
	if o.State.Finished() {
		r.beats.forget(o.ID)
		return o.Heartbeat
	}
	return r.beats.ObservedAt(o.ID, fmt.Sprint(o.Claim, o.Heartbeat.UnixNano()), time.Now(), o.Heartbeat)
}

// Silent reports whether no process seems to own a run: it recorded that it stopped, or this server
// has observed no heartbeat for a while. The clock of the process does not count.
func (r *Runs) Silent(o *redrive.Outcome) bool {
	switch at, known := r.beats.last(o.ID); {
	case o.State.Finished():
		return false
	case !o.Stopped.IsZero():
		return true
	case known: // of what the ledger had last
		return time.Since(at) > o.SilentAfter
	}
	return time.Since(r.beat(o)) > o.SilentAfter
}

// Known returns the runs, oldest first.
func (r *Runs) Known() []redrive.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// Broken returns why runs cannot be read; nil if all can.
func (r *Runs) Broken() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// Observe keeps a run that was read since the last refresh.
func (r *Runs) Observe(o redrive.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.Clone(r.all) // others may read the old ones
	i := slices.IndexFunc(r.all, func(is redrive.Outcome) bool { return is.ID == o.ID })
	switch {
	case i < 0:
		r.all = append(r.all, o)
	case Newer(&o, &r.all[i]):
		r.all[i] = o
	default:
		return
	}
	r.beat(&o)
}

// Newer reports whether an outcome of a run was recorded after another one.
func Newer(a, b *redrive.Outcome) bool {
	if a.State.Finished() != b.State.Finished() {
		return a.State.Finished()
	}
	return a.Heartbeat.After(b.Heartbeat) || !a.Stopped.IsZero() && b.Stopped.IsZero() && !a.Heartbeat.Before(b.Heartbeat)
}

// Unfinished returns the run that is not finished; empty if there is none.
func (r *Runs) Unfinished() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.all {
		if !r.all[i].State.Finished() {
			return r.all[i].ID
		}
	}
	return ""
}

// LacksOutcomes reports whether letters of runs that have ended may have outcomes by now.
func (r *Runs) LacksOutcomes() bool { return r.index.Summary().Pending > 0 && r.Unfinished() == "" }
