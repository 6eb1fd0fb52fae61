package redrive

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// alarm decides when a run aborts by itself, from what the watch sees and what is sent. It has a
// lock, and fires once.
// See DESIGN.md, "Aborting by itself".
type alarm struct {
	classes  []string
	tolerate int
	share    float64 // of the last outcomes
	window   time.Duration
	fired    chan struct{}

	mu       sync.Mutex
	canary   bool // any class counts
	sending  time.Time
	cause    string
	seen     []Failure
	failures int
	others   []Failure                // of letters, with classes that are not the run's
	polls    []inflight.FirstOutcomes // the last ones, with shareOf outcomes or more
	failed   int                      // letters, of any class
	sent     meter
	dead     meter
}

// maxSeen is how many failures an error shows.
const maxSeen = 10

// shareOf is how many of the last outcomes Pace.TolerateShare is of. Of fewer it is as much, so
// that the first failures of a run, or those of a small one, are no share yet: with the default the
// sixth failure is the first one that can be too many.
const shareOf = 50

// leastDead is how many new dead letters are taken for a trend.
const leastDead = 10

func newAlarm(rec *record) *alarm {
	share := rec.Pace.TolerateShare
	set(&share, defaultShare) // of a run that an older version began
	return &alarm{classes: rec.Classes, tolerate: rec.Pace.Tolerate, share: max(share, 0), window: rec.Pace.Window, canary: rec.State == Canary || rec.State == Waiting, fired: make(chan struct{})}
}

// recent is how old a failure of new traffic may be to count.
func (a *alarm) recent() time.Duration { return max(a.window, defaultWindow) }

// fire is called with the lock.
func (a *alarm) fire(cause string) {
	if a.cause == "" {
		a.cause = cause
		close(a.fired)
	}
}

// withdraw fires it for a reason that was found elsewhere.
func (a *alarm) withdraw(cause string, seen ...Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, seen...)
	a.fire(cause)
}

// onRefail records that a letter of the run failed again, for the first time.
func (a *alarm) onRefail(key string, f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.canary && !slices.Contains(a.classes, key) {
		if len(a.others) < maxSeen {
			a.others = append(a.others, f)
		}
		return
	}
	a.note(f, fmt.Sprintf("letter %s failed again with %s", f.Letter, f.Class))
}

// onNewFailure records that a record that was not redriven failed for the first time.
func (a *alarm) onNewFailure(key string, f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.classes, key) {
		a.note(f, fmt.Sprintf("new traffic fails with %s, as %s says", f.Class, f.Record))
	}
}

func (a *alarm) note(f Failure, what string) {
	if len(a.seen) < maxSeen {
		a.seen = append(a.seen, f)
	}
	if a.failures++; a.failures > a.tolerate || a.canary {
		if a.tolerate > 0 {
			what += fmt.Sprintf(", the %d. failure where %d are tolerated", a.failures, a.tolerate)
		}
		a.fire(what)
	}
}

// judged adds the first outcomes that a poll found, and fires if too large a share of the last ones
// are failures. Polls count as a whole: their order within one is not known.
func (a *alarm) judged(j inflight.FirstOutcomes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j.Letters == 0 || a.cause != "" {
		return
	}
	a.failed += j.Failed
	a.polls = append(a.polls, j)
	var last inflight.FirstOutcomes
	first := len(a.polls)
	for first > 0 && last.Letters < shareOf {
		first--
		last.Letters += a.polls[first].Letters
		last.Failed += a.polls[first].Failed
	}
	a.polls = slices.Delete(a.polls, 0, first)
	if a.failed <= a.tolerate || float64(last.Failed) <= a.share*float64(max(last.Letters, shareOf)) {
		return
	}
	a.seen = append(a.seen, a.others[:min(len(a.others), maxSeen-len(a.seen))]...)
	a.fire(fmt.Sprintf("%d of the last %d letters failed again, of any class, where %.3g%% of %d are tolerated",
		last.Failed, last.Letters, 100*a.share, max(last.Letters, shareOf)))
}

// onDeath records that a letter of the run's groups came to the dead-letter topic.
func (a *alarm) onDeath(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead.add(at, 1)
}

// onSent records that letters were sent.
func (a *alarm) onSent(now time.Time, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent.add(now, n)
}

// stage sets the state of the run: sending is when it began to send all letters, and zero while it
// does not.
func (a *alarm) stage(canary bool, sending time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.canary, a.sending = canary, sending
}

// check fires if the dead-letter topic fills faster than the run drains it, over a whole window of
// sending.
func (a *alarm) check(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sending.IsZero() || now.Sub(a.sending) < a.window || a.window <= 0 {
		return
	}
	if came, went := a.dead.sum(now, a.window), a.sent.sum(now, a.window); came >= leastDead && came > went {
		a.fire(fmt.Sprintf("the dead-letter topic fills faster than it is drained: %d letters came within %v, and %d were redriven", came, a.window, went))
	}
}

// result is why it fired, and what was seen; empty if it did not.
func (a *alarm) result() (cause string, seen []Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause, slices.Clone(a.seen)
}

// meter counts events by the second.
type meter struct {
	seconds []second
}

type second struct {
	at int64
	n  int
}

func (m *meter) add(now time.Time, n int) {
	at := now.Unix()
	if k := len(m.seconds); k > 0 && m.seconds[k-1].at >= at {
		m.seconds[k-1].n += n
		return
	}
	m.seconds = append(m.seconds, second{at, n})
}

// sum is how many events there were within a window, and forgets those before it.
func (m *meter) sum(now time.Time, window time.Duration) (n int) {
	since := now.Add(-window).Unix()
	m.seconds = slices.DeleteFunc(m.seconds, func(s second) bool { return s.at < since })
	for _, s := range m.seconds {
		n += s.n
	}
	return n
}
