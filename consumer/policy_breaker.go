package consumer

import (
	"cmp"
	"math"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// Breaker is a circuit breaker: it holds a topic's records while most of them fail, since then
// something that the handler depends on is down, or the handler itself is broken. Records that wait
// use up no attempt, and an outage dead-letters none of them.
//
// It counts the runs of the handler that ended in the last ten seconds, and opens in one of three
// cases: a share of them failed retryably; a share panicked, or failed with an error that is
// terminal by default only; or many failed in a row. A failure that the handler or a rule calls
// terminal or discarded is no run, and does not open it.
//
// While it is open, no record of the topic runs, neither from the source nor from its retry topics,
// but for probes: one record at a time, of another partition each time. A failed probe is no
// attempt, and its record stays where it is. Once ten more probes were good than failed, two
// records may run at a time, then four, and so on until none waits. [Policy.Immediate] does not
// repeat a probe.
//
// [Health] and the log say why a lane is held. The zero value is on, with the defaults below. There
// is one for each source topic and process.
type Breaker struct {
	// Off switches the breaker off.
	Off bool
	// Failures is the share of the runs that have to fail retryably. Default 0.5, at most 1. Of the
	// records of the source alone, ten at least have to run in that time, and as large a share of
	// these has to fail: retries and redriven records alone do not hold the source.
	Failures float64
	// Defects is the share of the runs that have to panic, or to fail with an error that is
	// terminal because neither the handler nor a rule has named it. Default 0.9, at most 1;
	// negative means that these never open it.
	Defects float64
	// MinRuns is the least number of runs in ten seconds for a share to count. Default 100.
	MinRuns int
	// InARow is the number of runs of source records that have to fail one after the other, over
	// ten seconds or more and none more than a minute after the one before, while no record of the
	// topic succeeds. It is for topics with fewer runs than MinRuns. Default 20; negative means
	// that a row never opens it.
	InARow int
	// Interval is the time from the opening to the first probe. Each failed probe doubles it, up to
	// MaxInterval. Default 1 s, and 15 s: so a topic is back at its speed within 30 s of the end of
	// an outage, if its handler takes less than half a second.
	Interval, MaxInterval time.Duration
}

// RetryBudget bounds the retries that fail again, as in Finagle and Envoy: while many records fail
// for good, or for long, they must not take the handler's time from the others. Beyond the budget,
// due records of the topic's retry topics wait: late, never early. The source does not wait. A
// retry that succeeds costs nothing, and the first delivery of a redriven record is no retry. The
// zero value is on. There is one for each source topic and process.
type RetryBudget struct {
	// Off switches the budget off.
	Off bool
	// Share is how many of the runs of the last ten seconds may be retries that failed again.
	// Default 0.2, at most 1.
	Share float64
	// MinPerSecond is how many retries may fail again in any case, as the average of ten seconds.
	// Default 10.
	MinPerSecond int
}

// goodProbes is how many more probes have to be good than fail.
const goodProbes = 10

func (b Breaker) withDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 0.5)
	b.Defects = cmp.Or(b.Defects, 0.9)
	b.MinRuns = cmp.Or(b.MinRuns, 100)
	b.InARow = cmp.Or(b.InARow, 20)
	b.Interval = cmp.Or(b.Interval, time.Second)
	b.MaxInterval = cmp.Or(b.MaxInterval, max(15*time.Second, b.Interval))
	return b
}

func (r RetryBudget) withDefaults() RetryBudget {
	r.Share = cmp.Or(r.Share, 0.2)
	r.MinPerSecond = cmp.Or(r.MinPerSecond, 10)
	return r
}

// problems lists the problems of a breaker with its defaults.
func (b Breaker) problems(add func(format string, args ...any)) {
	if !(b.Failures > 0 && b.Failures <= 1) {
		add("Breaker.Failures is %v: a share above 0, and at most 1; Breaker.Off switches the breaker off", b.Failures)
	}
	if !(b.Defects <= 1) {
		add("Breaker.Defects is %v: a share of at most 1, or negative for none", b.Defects)
	}
	if b.MinRuns < 0 {
		add("Breaker.MinRuns is %d: at least 1, or zero for the default", b.MinRuns)
	}
	if b.Interval < 0 || b.MaxInterval < b.Interval {
		add("Breaker.Interval is %v and Breaker.MaxInterval %v: both positive, and the second at least as long", b.Interval, b.MaxInterval)
	}
}

// problems lists the problems of a budget with its defaults.
func (r RetryBudget) problems(add func(format string, args ...any)) {
	if !(r.Share > 0 && r.Share <= 1) {
		add("RetryBudget.Share is %v: a share above 0, and at most 1; RetryBudget.Off switches the budget off", r.Share)
	}
	if r.MinPerSecond < 0 {
		add("RetryBudget.MinPerSecond is %d: at least 1, or zero for the default", r.MinPerSecond)
	}
}

// breakerSettings are the thresholds of a topic's breaker and budget.
func (p *Policy) breakerSettings() breaker.Settings {
	defects := p.Breaker.Defects
	if defects < 0 {
		defects = 2 // no share is
	}
	return breaker.Settings{
		Off: p.Breaker.Off, Failures: p.Breaker.Failures, Defects: defects,
		Runs: int64(p.Breaker.MinRuns), Row: int64(max(p.Breaker.InARow, 0)),
		Interval: p.Breaker.Interval, MaxInterval: p.Breaker.MaxInterval, Probes: goodProbes,
		BudgetOff: p.RetryBudget.Off, BudgetShare: p.RetryBudget.Share,
		BudgetFloor: int64(min(p.RetryBudget.MinPerSecond, math.MaxInt32)) * int64(breaker.Window/time.Second),
	}
}
