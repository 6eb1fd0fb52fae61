package redrive

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// alarm decides when a run aborts itself, from observed failures and from sent letters. It fires
// once. Its methods may be called concurrently. See DESIGN.md, "Aborting by itself".
type alarm struct {
	hasClass func(string) bool // of the run
	tolerate int
	share    float64 // tolerated share of failures among the last outcomes
	window   time.Duration
	fired    chan struct{}

	mu       sync.Mutex
	canary   bool      // in the canary, failures of any class count
	sending  time.Time // the begin of Sending; zero in other states
	cause    string
	seen     []Failure
	failures int
	others   []Failure                // of letters, with classes that are not the run's
	polls    []inflight.FirstOutcomes // the last polls, with shareOf outcomes or more in total
	failed   int                      // letters that failed, with any class
	sent     meter
	dead     meter
}

// maxSeen is the number of failures that a FailedAgainError holds.
const maxSeen = 10

// shareOf is the number of last outcomes to which Pace.TolerateShare applies. With fewer outcomes
// the share still applies to shareOf, so that the first failures of a run are not yet a share. With
// the default the sixth failure is the first that can fire.
const shareOf = 50

// leastDead is the least number of new dead letters that counts as a trend.
const leastDead = 10

func newAlarm(rec *record) *alarm {
	share := rec.Pace.TolerateShare
	set(&share, defaultShare) // a run from an older version has none
	return &alarm{
		hasClass: rec.hasClass(), tolerate: rec.Pace.Tolerate, share: max(share, 0), window: rec.Pace.Window,
		canary: rec.State == Canary || rec.State == Waiting, fired: make(chan struct{}), sent: meter{}, dead: meter{},
	}
}

// recent returns the age up to which a failure of new traffic counts.
func (a *alarm) recent() time.Duration { return max(a.window, defaultWindow) }

// fire fires the alarm, unless it has fired. The caller holds the lock.
func (a *alarm) fire(cause string) {
	if a.cause == "" {
		a.cause = cause
		close(a.fired)
	}
}

// withdraw fires the alarm for a reason from elsewhere.
func (a *alarm) withdraw(cause string, seen ...Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, seen...)
	a.fire(cause)
}

// onRefail handles the first new failure of a letter of the run. retried is the retry topic in
// which it waits for its next attempt; empty for a dead letter.
func (a *alarm) onRefail(key, retried string, f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.canary && !a.hasClass(key) {
		if len(a.others) < maxSeen {
			a.others = append(a.others, f)
		}
		return
	}
	what := fmt.Sprintf("letter %s failed again with %s", f.Letter, cmp.Or(f.Class, "no class"))
	if retried != "" { // it counts as pending, and may still succeed
		what += ", and waits in " + retried + " for its next attempt"
	}
	a.count(f, what)
}

// onNewFailure handles the first failure of a record that was not redriven.
func (a *alarm) onNewFailure(key string, f Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hasClass(key) {
		a.count(f, fmt.Sprintf("new traffic fails with %s: see %s", f.Class, f.Record))
	}
}

func (a *alarm) count(f Failure, what string) {
	if len(a.seen) < maxSeen {
		a.seen = append(a.seen, f)
	}
	a.failures++
	switch {
	case a.canary && a.tolerate > 0:
		a.fire(what + "; the canary tolerates no failure")
	case a.canary || a.tolerate == 0:
		a.fire(what)
	case a.failures > a.tolerate:
		a.fire(fmt.Sprintf("%s; it is failure %d, and %d are tolerated", what, a.failures, a.tolerate))
	}
}

// judged adds the first outcomes of a poll. It fires if the share of failures among the last
// outcomes is too large. A poll counts as a whole, because the order of its outcomes is unknown.
func (a *alarm) judged(j inflight.FirstOutcomes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if j == (inflight.FirstOutcomes{}) || a.cause != "" {
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

// onDeath counts a new dead letter of the run's groups.
func (a *alarm) onDeath(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dead[at.Unix()]++
}

// onSent counts sent letters.
func (a *alarm) onSent(now time.Time, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[now.Unix()] += n
}

// stage sets the run's state: canary is true in the canary, and sending is the begin of Sending or
// zero.
func (a *alarm) stage(canary bool, sending time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.canary, a.sending = canary, sending
}

// check fires if the dead-letter topic filled faster than the run drained it, over a whole window
// of Sending.
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

// result returns the cause and the observed failures; both are empty if the alarm has not fired.
func (a *alarm) result() (cause string, seen []Failure) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause, slices.Clone(a.seen)
}

// meter counts events by Unix second.
type meter map[int64]int

// sum returns the number of events within the window, and drops earlier ones.
func (m meter) sum(now time.Time, window time.Duration) (n int) {
	since := now.Add(-window).Unix()
	maps.DeleteFunc(m, func(at int64, _ int) bool { return at < since })
	for _, events := range m {
		n += events
	}
	return n
}
