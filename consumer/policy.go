package consumer

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// Disposition says where a record goes that will not be tried again.
type Disposition uint8

const (
	// DeadLetter writes the record to its source's dead-letter topic. The default.
	DeadLetter Disposition = iota
	// Discard drops the record: counted and logged, never silent.
	Discard
	// Stop halts the lane on the record, uncommitted, while the other lanes go on. Health says so.
	// A restart runs the record again. To move on without it, stop the group and set its offset
	// with kafka-consumer-groups.sh --reset-offsets for that partition.
	Stop
)

func (d Disposition) String() string {
	switch d {
	case DeadLetter:
		return "dead-letter"
	case Discard:
		return "discard"
	case Stop:
		return "stop"
	}
	return fmt.Sprintf("Disposition(%d)", uint8(d))
}

// Policy says how often, when and for how long a record is tried, and where it goes then. The zero
// value of each field is its default; a negative one means none.
type Policy struct {
	// Tiers are the delays of the retry topics, whole milliseconds, strictly ascending. Nil means 5
	// s, 30 s, 5 m; an empty slice that is not nil means none: one delivery, then OnExhausted.
	// Package retrytopics has common schedules.
	Tiers []time.Duration

	// Immediate repeats a failed run in place before the record leaves its source partition.
	// Default none.
	Immediate Immediate

	// MaxAttempts counts deliveries, the first included; runs in place are part of one. More than
	// the tiers hold repeats the last tier. Zero means one more than the number of tiers.
	MaxAttempts int

	// MaxAge ends the retries of a record that failed first so long ago. Default none.
	MaxAge time.Duration

	// MaxRetryAfter caps what a handler asks for with classify.RetryAfter, which is the least wait:
	// the record goes to the next tier, or to the first one behind it that is as long, and waits
	// that tier's delay. What no tier covers waits in the last one for as long as was asked. Jitter
	// comes on top of either. Default 1 h; negative takes no account of what handlers ask for.
	MaxRetryAfter time.Duration

	// HandlerTimeout is the deadline of each run of the handler, by its context. Default 1 m;
	// negative means none. A handler that ignores it is reported, not ended.
	HandlerTimeout time.Duration

	// Jitter spreads due times over up to this share of the wait, later, never earlier, so that
	// records which failed together do not come back together. Default 0.1; at most 1.
	Jitter float64

	// OnExhausted is for records whose attempts or age are used up, OnTerminal for those whose
	// error is terminal. Default DeadLetter.
	OnExhausted, OnTerminal Disposition

	// OnOversize is for records that are too large for the dead-letter topic, after the story of
	// their failure was cut short. Default DeadLetter: written without the value, which is to be
	// read at the original coordinates for as long as it is there; counted and logged, and the
	// lane's health is not OK from then on.
	OnOversize Disposition
}

// Immediate repeats a failed run in place, for faults that last milliseconds: up to Attempts more
// runs, the n-th after a random wait of up to Base·2ⁿ⁻¹, at most Max (full jitter, as in Amazon's
// "Exponential Backoff And Jitter"). The partition waits meanwhile, longer while its topic is
// paused; its slot of Config.Concurrency is lent. Only retryable failures on the source partition
// are repeated. A RetryAfter is waited for besides the random wait; one that is longer than Max is
// not waited for in place, and the record goes to its tier.
type Immediate struct {
	Attempts int           // default none
	Base     time.Duration // default 10 ms
	Max      time.Duration // default 200 ms
}

// wait is how long to wait before the n-th repetition, n ≥ 1.
func (m Immediate) wait(n int) time.Duration {
	limit := m.Max
	if n <= 62 && m.Base <= m.Max>>(n-1) {
		limit = m.Base << (n - 1)
	}
	return time.Duration(rand.Uint64N(uint64(limit) + 1))
}

// jittered is the longest that a wait becomes by its jitter.
func (p *Policy) jittered(wait time.Duration) time.Duration {
	return wait + time.Duration(p.Jitter*float64(wait))
}

func (p Policy) withDefaults() Policy {
	if p.Tiers == nil {
		p.Tiers = retrytopics.Default
	}
	p.Tiers = append([]time.Duration{}, p.Tiers...)
	def(&p.MaxAttempts, 1+len(p.Tiers))
	def(&p.MaxAge, -1)
	def(&p.MaxRetryAfter, time.Hour)
	def(&p.HandlerTimeout, time.Minute)
	def(&p.Jitter, 0.1)
	p.Jitter = max(p.Jitter, 0)
	p.Immediate.Attempts = max(p.Immediate.Attempts, 0)
	def(&p.Immediate.Base, 10*time.Millisecond)
	def(&p.Immediate.Max, 200*time.Millisecond)
	return p
}

// problems lists what is wrong with the policy, of is what it is for. Tiers are checked with the
// names they lead to.
func (p Policy) problems(of string) (all []error) {
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(of+": "+format, args...)) }
	if p.MaxAttempts < 0 {
		add("MaxAttempts is %d: at least 1, or zero for the default", p.MaxAttempts)
	}
	if p.MaxAttempts > 1 && len(p.Tiers) == 0 {
		add("MaxAttempts is %d, but there is no tier to wait in: name Tiers, or leave MaxAttempts at zero", p.MaxAttempts)
	}
	if !(p.Jitter <= 1) {
		add("Jitter is %v: at most 1, the share of the delay that is added", p.Jitter)
	}
	if p.Immediate.Base <= 0 || p.Immediate.Max <= 0 {
		add("Immediate.Base and Immediate.Max must be positive")
	}
	for name, d := range map[string]Disposition{"OnExhausted": p.OnExhausted, "OnTerminal": p.OnTerminal, "OnOversize": p.OnOversize} {
		if d > Stop {
			add("%s is %v: DeadLetter, Discard or Stop", name, d)
		}
	}
	return all
}

// def sets v to its default where it is zero.
func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Delays are the delays of the policy's tiers, the default ones where Tiers is nil.
func (p Policy) Delays() []time.Duration { return p.withDefaults().Tiers }

// decide is the policy as a function. attempts counts the deliveries of the record, the failed one
// included; from is the tier that it failed on, by its topic and delay, or zero.
func (p *Policy) decide(s retrytopics.Siblings, from retrytopics.Tier, attempts int, firstFailed, now time.Time, r classify.Result) decision {
	switch {
	case r.Verdict == classify.VerdictDiscard:
		return decision{final: true, how: Discard, reason: headers.ReasonTerminal}
	case r.Verdict != classify.VerdictRetry:
		return decision{final: true, how: p.OnTerminal, reason: terminalReason(r)}
	case p.MaxAge > 0 && now.Sub(firstFailed) >= p.MaxAge:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExpired}
	case attempts >= p.MaxAttempts || len(s.Tiers) == 0:
		return decision{final: true, how: p.OnExhausted, reason: headers.ReasonExhausted}
	}
	asked := p.asked(r)
	tier := next(s, from, asked)
	wait := max(tier.Delay, asked)
	return decision{tier: tier, due: wholeMillis(now.Add(wait + spread(p.Jitter, wait)))}
}
