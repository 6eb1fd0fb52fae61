package consumer

import (
	"cmp"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// Breaker is what siding does while many records of a topic fail, so that an outage dead-letters
// none whose downstream comes back, and no healthy record waits for others' faults. There is one
// for each source topic and process; [Health] and the log say what it does, and why.
//
// It counts the runs of the source's records: the last ones, of five seconds at least. What the
// handler or a rule calls terminal or discarded is an answer, and no failure. The topic is
//
//   - strained once a fifth fails retryably. All records run, and a retryable failure is no
//     attempt: the record waits in the tier in which it was, or in the first one. [RetryBudget]
//     says how many of them run again.
//   - held once nearly all fail retryably, panic, or end with an error that is terminal by default
//     only. The source's records wait where they are, in order, but for ten probes each 15 s, and
//     so do those of the retry topics. A failed probe is no attempt, and its record stays where it
//     is. After the first good probe more and more records run at a time.
//
// The zero value is on, with the defaults below.
type Breaker struct {
	// Off switches both off: each failure is an attempt, and no record waits.
	Off bool
	// Hold is the share of the source's runs below which none of its records waits, whatever
	// fails. Default 0.95. A lower one calls a broken downstream less often, and holds more healthy
	// records.
	Hold float64
	// Strained is the share of the source's runs which have to fail for failures to cost no
	// attempt, and the share of all runs that may be retries from then on. Default 0.2, so that a
	// downstream in trouble gets at most a quarter more calls than records come.
	Strained float64
	// MaxOutage is for how long after a record's first failure, or its redrive, its failures cost
	// no attempt while the topic is strained or held. Default 1 h: a record whose downstream comes
	// back within that time is not dead-lettered. [Policy.MaxAge], if it is shorter, ends its
	// retries all the same.
	MaxOutage time.Duration
}

// RetryBudget bounds the retries, as in Finagle and Envoy: while many records fail, they must not
// take the handler's time from the others. Of all runs, [Breaker.Strained] may be retries that fail
// again, and retries of any kind while the topic is strained; one a second may in any case. Beyond
// that, due records of the topic's retry topics wait: late, never early. The source does not wait,
// and the first delivery of a redriven record is no retry. The zero value is on. There is one for
// each source topic and process.
type RetryBudget struct {
	// Off switches the budget off: what is due runs.
	Off bool
}

func (b Breaker) withDefaults() Breaker {
	b.Hold = cmp.Or(b.Hold, 0.95)
	b.Strained = cmp.Or(b.Strained, 0.2)
	b.MaxOutage = cmp.Or(b.MaxOutage, time.Hour)
	return b
}

// problems lists the problems of a breaker with its defaults.
func (b Breaker) problems(add func(format string, args ...any)) {
	if !(b.Strained > 0 && b.Strained < 1) {
		add("Breaker.Strained is %v: a share above 0 and below 1; Breaker.Off switches the breaker off", b.Strained)
	}
	if !(b.Hold > b.Strained && b.Hold < 1) {
		add("Breaker.Hold is %v: a share above Breaker.Strained, %v, and below 1; Breaker.Off switches the breaker off", b.Hold, b.Strained)
	}
	if b.MaxOutage < 0 {
		add("Breaker.MaxOutage is %v: positive, or zero for the default", b.MaxOutage)
	}
}

// guardSettings are the settings of a topic's guard.
func (p *Policy) guardSettings() guard.Settings {
	return guard.Settings{
		Off: p.Breaker.Off, Hold: p.Breaker.Hold, Strain: p.Breaker.Strained, MaxOutage: p.Breaker.MaxOutage, BudgetOff: p.RetryBudget.Off,
	}
}
