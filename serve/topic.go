package serve

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/book"
)

// topic is a dead-letter topic of the cluster.
type topic struct {
	redrive.DeadLetterTopic
	config Topic // what the configuration says of it
	book   *book.Book
	ruled  atomic.Bool // a rule is being applied
	// starting has one element while a request begins a run, or discards letters.
	starting chan struct{}
	adopting atomic.Bool // a run of another server is being resumed
	retainer retainer

	mu        sync.Mutex
	read      position  // of the brokers' when the book was last refreshed
	asked     time.Time // when they were asked for it
	ours      time.Time // since when this server owns the topic; zero if it does not
	retention time.Duration
	runs      []redrive.Outcome
	classes   classes
	heard     map[string]heard
	rests     map[string]rest // by rule

	refreshing bool
	failed     error // the last refresh
	retryIn    time.Duration
	retryAt    time.Time
}

// rest is a time in which a rule does nothing on a topic, after an error.
type rest struct {
	until time.Time
	wait  time.Duration
}

// heard is something that another process wrote, and when this server heard of it.
type heard struct {
	what string
	at   time.Time
}

// hear returns when something happened that a ledger tells of, by the clock of this server. The
// clock of whoever wrote it may be wrong. What is new since the server looked last has happened
// just now. What the server finds at its first look happened when it says so, and not in the
// future.
func (t *topic) hear(about, what string, now, says time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, looked := t.heard[about]
	if looked && was.what == what {
		return was.at
	}
	if t.heard == nil {
		t.heard = map[string]heard{}
	}
	at := now
	if !looked && says.Before(now) {
		at = says
	}
	t.heard[about] = heard{what, at}
	return at
}

// position is how far a dead-letter topic and its ledger are: the sums of the partitions' offsets.
type position struct{ start, end, ledger int64 }

// refresh brings the book and the runs up to the brokers' position, unless they are there. asked is
// when the brokers were asked for it.
func (t *topic) refresh(ctx context.Context, r *redrive.Redriver, at position, asked time.Time) error {
	t.mu.Lock()
	before := t.read
	if p := t.book.Progress(); at == before && p.Problem == nil && !p.Complete.IsZero() {
		t.asked = asked
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	err := t.book.Refresh(ctx)
	var runs []redrive.Outcome
	if at.ledger != before.ledger {
		var runsErr error
		if runs, runsErr = r.Runs(ctx, t.DeadLetterTopic.Topic); err == nil {
			err = runsErr
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.read, t.asked = at, asked
		if at.ledger != before.ledger {
			t.runs = runs
		}
	}
	return err
}

// Waits before a topic is read again that could not be read; each further one is twice as long.
const (
	leastRetry = 2 * time.Second
	mostRetry  = 2 * time.Minute
)

// beginRefresh reports whether the topic may be read now, and reserves that until endRefresh.
func (t *topic) beginRefresh(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refreshing || now.Before(t.retryAt) {
		return false
	}
	t.refreshing = true
	return true
}

func (t *topic) endRefresh(err error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshing, t.failed = false, err
	if err == nil {
		t.retryIn, t.retryAt = 0, time.Time{}
		return
	}
	t.retryIn = min(max(2*t.retryIn, leastRetry), mostRetry)
	t.retryAt = now.Add(t.retryIn)
}

// problem returns why the topic could not be read; nil if it could.
func (t *topic) problem() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// reread reads what the ledger has now.
func (t *topic) reread(ctx context.Context, r *redrive.Redriver) error {
	if err := t.book.Refresh(ctx); err != nil {
		return err
	}
	runs, err := r.Runs(ctx, t.DeadLetterTopic.Topic)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = runs
	return nil
}

// known returns the runs, as the ledger had them when it was last read, oldest first.
func (t *topic) known() []redrive.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.runs)
}

// saw keeps a run that was read since the last refresh.
func (t *topic) saw(o redrive.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = slices.Clone(t.runs) // others may read the old ones
	i := slices.IndexFunc(t.runs, func(r redrive.Outcome) bool { return r.ID == o.ID })
	switch {
	case i < 0:
		t.runs = append(t.runs, o)
	case newer(&o, &t.runs[i]):
		t.runs[i] = o
	}
}

// newer reports whether an outcome of a run was recorded after another one.
func newer(a, b *redrive.Outcome) bool {
	if a.State.Finished() != b.State.Finished() {
		return a.State.Finished()
	}
	return a.Heartbeat.After(b.Heartbeat) || !a.Stopped.IsZero() && b.Stopped.IsZero() && !a.Heartbeat.Before(b.Heartbeat)
}

// alone lets one request at a time change the topic, until release is called.
func (t *topic) alone(ctx context.Context) (release func(), err error) {
	select {
	case t.starting <- struct{}{}:
		return func() { <-t.starting }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// decides reports whether this server may decide about the topic: it owns the topic, and has read
// what the owner before it noted. Only [Server.Run] calls it.
func (t *topic) decides(owned bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !owned {
		t.ours = time.Time{}
		return false
	}
	if t.ours.IsZero() {
		t.ours = time.Now()
	}
	return t.asked.After(t.ours)
}

func (t *topic) setRetention(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.retention = d
}

// unfinished returns the run of the topic that is not finished; empty if there is none.
func (t *topic) unfinished() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.runs {
		if !t.runs[i].State.Finished() {
			return t.runs[i].ID
		}
	}
	return ""
}
