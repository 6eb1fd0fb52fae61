package consumer

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/retrytopics"
)

// Policy says how often, when and for how long a record is tried, and what happens to it then. The
// zero value of a field is its default. A negative MaxAge, HandlerTimeout, Jitter, CrashLimit or
// Immediate.Attempts means none, and a negative MaxRetryAfter that siding ignores what handlers ask
// for. [New] refuses other negative numbers.
type Policy struct {
	// Tiers are the delays of the retry topics, in whole milliseconds, strictly ascending. Nil
	// means 5 s, 30 s, 5 m. An empty slice that is not nil means no retry topics: one delivery,
	// then OnExhausted. Package retrytopics has common schedules.
	Tiers []time.Duration

	// Immediate repeats a failed run in place, before the record leaves its source partition.
	// Default none.
	Immediate Immediate

	// MaxAttempts bounds the deliveries of a record, the first included; in-place retries are part
	// of one delivery. With more attempts than tiers, the last tier repeats. A redriven record
	// begins at 1 again; its run may set a smaller bound. Default: one more than the number of
	// tiers.
	MaxAttempts int

	// MaxAge ends the retries of a record once its first failure is this old, or its last redrive
	// if it was redriven. The time for which this process held the topic, see [Breaker], does not
	// count. Default none.
	MaxAge time.Duration

	// MaxRetryAfter caps the wait that a handler asks for with classify.RetryAfter. The record goes
	// to the next tier whose delay is at least as long, and waits that delay. If no tier is long
	// enough, it waits in the last tier for as long as asked. Jitter is added in both cases.
	// Default 1 h; with a negative value, siding ignores the wait that handlers ask for.
	MaxRetryAfter time.Duration

	// HandlerTimeout is the deadline of each run of the handler, by its context. Default 1 m;
	// negative means none. siding reports a handler that ignores it, and cannot end it.
	HandlerTimeout time.Duration

	// Jitter delays due times by a random share of the wait, up to this one, so that records which
	// failed together do not return together. It never makes them earlier. Default 0.1; at most 1.
	// New refuses a Jitter with which a record may be due less than half an hour before its retry
	// topic may delete it.
	Jitter float64

	// Breaker is what happens while many of the topic's records fail, and RetryBudget bounds the
	// retries. Each process has its own, and both are on by default.
	Breaker     Breaker
	RetryBudget RetryBudget

	// CrashLimit is how many processes may die before siding isolates the records that were
	// running, to find the one that kills them: with the default of 3, they run in groups after the
	// second death, those of one group singly after the third, and a record that ran alone at the
	// fourth is not run again: it is dead-lettered with reason crash-loop, or as OnTerminal says.
	// At least 2; negative means that records are never isolated, and kill a process at each start.
	CrashLimit int

	// OnExhausted is for records whose attempts or age are used up. OnTerminal is for records whose
	// error is terminal. Default DeadLetter.
	OnExhausted, OnTerminal Disposition

	// NoteDiscards writes a note to the ledger of the source's dead-letter topic about each record
	// that is discarded: coordinates, class and attempts, neither value nor message. The record is
	// finished when the note is acknowledged. Package dlq reads the notes, and redrive list
	// --discarded shows them. They stay until they are pruned, or expire with the ledger: 7 days
	// later than dead letters, see Provision.DLQRetention. If the ledger does not exist, or is too
	// small for the note, the lane waits. Default none.
	NoteDiscards bool

	// OnOversize is for records that are too large for the dead-letter topic even after their
	// failure headers were shortened. Default DeadLetter: the letter is written without the value,
	// which stays at the original position until it expires. siding counts and logs that, and the
	// lane's health is not OK from then on.
	OnOversize Disposition
}

// Disposition says what happens to a record that will not be tried again.
type Disposition uint8

const (
	// DeadLetter writes the record to its source's dead-letter topic. The default.
	DeadLetter Disposition = iota
	// Discard drops the record. siding counts and logs it.
	Discard
	// Stop halts the lane at the record, which stays uncommitted; other lanes are not affected.
	// Health reports the lane as stopped. A restart runs the record again. To skip it, stop the
	// group and set its offset for that partition with kafka-consumer-groups.sh --reset-offsets.
	Stop
)

// Immediate repeats a failed run in place, for faults that last milliseconds. Up to Attempts more
// runs follow. The n-th comes after a random wait of up to Base·2ⁿ⁻¹, at most Max (full jitter, as
// in Amazon's "Exponential Backoff And Jitter").
//
// The partition waits meanwhile, also while its topic is paused. Its slot of Config.Concurrency is
// lent. Only retryable failures on the source partition are repeated. The wait of a RetryAfter
// comes on top of the random wait. If it is longer than Max, the record goes to its tier instead.
type Immediate struct {
	Attempts int           // default none
	Base     time.Duration // default 10 ms
	Max      time.Duration // default 200 ms
}

// wait returns the random wait before the n-th in-place retry, n ≥ 1.
func (m Immediate) wait(n int) time.Duration {
	limit := backoff.Of(n, m.Base, m.Max)
	return time.Duration(rand.Uint64N(uint64(limit) + 1))
}

// jittered is the wait with the largest possible jitter.
func (p *Policy) jittered(wait time.Duration) time.Duration {
	return plus(wait, share(p.Jitter, wait), 1)
}

func (p Policy) withDefaults() Policy {
	if p.Tiers == nil {
		p.Tiers = retrytopics.Default
	}
	p.Tiers = append([]time.Duration{}, p.Tiers...)
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 1+len(p.Tiers))
	p.MaxAge = cmp.Or(p.MaxAge, -1)
	p.MaxRetryAfter = cmp.Or(p.MaxRetryAfter, time.Hour)
	p.HandlerTimeout = cmp.Or(p.HandlerTimeout, time.Minute)
	p.CrashLimit = cmp.Or(p.CrashLimit, 3)
	p.Jitter = cmp.Or(p.Jitter, 0.1)
	p.Jitter = max(p.Jitter, 0)
	p.Immediate.Attempts = max(p.Immediate.Attempts, 0)
	p.Immediate.Base = cmp.Or(p.Immediate.Base, 10*time.Millisecond)
	p.Immediate.Max = cmp.Or(p.Immediate.Max, 200*time.Millisecond)
	p.Breaker = p.Breaker.withDefaults()
	return p
}

// problems lists the problems of the policy; of is the policy's name in messages. Tiers are checked
// together with their topic names.
func (p Policy) problems(of string) (all []error) {
	add := func(format string, args ...any) { all = append(all, fmt.Errorf(of+": "+format, args...)) }
	if p.MaxAttempts < 0 {
		add("MaxAttempts is %d: at least 1, or zero for the default", p.MaxAttempts)
	}
	if p.MaxAttempts > 1 && len(p.Tiers) == 0 {
		add("MaxAttempts is %d, but there is no tier to wait in: name Tiers, or leave MaxAttempts at zero", p.MaxAttempts)
	}
	if p.CrashLimit == 1 {
		add("CrashLimit is 1: a process may die of something else; at least 2, or negative for never")
	}
	if !(p.Jitter <= 1) {
		add("Jitter is %v: at most 1, the share of the wait that is added", p.Jitter)
	}
	if p.Immediate.Base <= 0 || p.Immediate.Max <= 0 {
		add("Immediate.Base and Immediate.Max must be positive")
	}
	p.Breaker.problems(add)
	for name, d := range map[string]Disposition{"OnExhausted": p.OnExhausted, "OnTerminal": p.OnTerminal, "OnOversize": p.OnOversize} {
		if d > Stop {
			add("%s is Disposition(%d): DeadLetter, Discard or Stop", name, d)
		}
	}
	return all
}

// Delays returns the delays of the policy's tiers, those of the default tiers if Tiers is nil.
func (p Policy) Delays() []time.Duration { return p.withDefaults().Tiers }

// RetryTime returns the longest time from a record's first attempt to its last: the delays of its
// tiers with the largest jitter, and the waits in place. It leaves out the handler's own time, and
// waits that a handler asks for with classify.RetryAfter. It is math.MaxInt64 if the time is longer
// than a Duration can be. Of a policy that [New] refuses it says nothing.
func (p Policy) RetryTime() time.Duration {
	p = p.withDefaults()
	sum, doubling := time.Duration(0), min(p.Immediate.Attempts, 64) // then each wait is Max
	for n := 1; n <= doubling; n++ {
		sum = plus(sum, backoff.Of(n, p.Immediate.Base, p.Immediate.Max), 1)
	}
	sum = plus(sum, p.Immediate.Max, p.Immediate.Attempts-doubling)
	for n := 1; n < p.MaxAttempts && len(p.Tiers) > 0 && (p.MaxAge <= 0 || sum < p.MaxAge); n++ {
		if n < len(p.Tiers) {
			sum = plus(sum, p.jittered(p.Tiers[n-1]), 1)
			continue
		}
		last, times := p.jittered(p.Tiers[len(p.Tiers)-1]), p.MaxAttempts-n
		if p.MaxAge > 0 && last > 0 {
			times = min(times, int((p.MaxAge-sum-1)/last)+1)
		}
		return plus(sum, last, times)
	}
	return sum
}

// plus returns sum + times × d, at most the longest Duration.
func plus(sum, d time.Duration, times int) time.Duration {
	if d > 0 && int64(times) > int64((math.MaxInt64-sum)/d) {
		return math.MaxInt64
	}
	return sum + d*time.Duration(times)
}

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

// share returns a share, at most 1, of a wait. The float64 of the longest wait is longer than any.
func share(of float64, wait time.Duration) time.Duration {
	if f := of * float64(wait); f < math.MaxInt64 {
		return time.Duration(f)
	}
	return wait
}
