package guard

import (
	"iter"
	"time"
)

const (
	// buckets is how many buckets the measure has.
	buckets = 10
	// A bucket has the runs that began within bucketTime, and at least bucketRuns.
	bucketTime = time.Second / 2
	bucketRuns = evidence / buckets
	// evidence is how many bad runs have to be beyond what good ones outweigh, to hold a topic.
	evidence = 120
	// enough is the least number of runs for a share to strain a topic.
	enough = evidence / 2
	// kept is how many buckets wait for the ends of their runs, and latest for how long.
	kept   = 64
	latest = 5 * time.Minute
	// old is the age from which on a bucket says nothing.
	old = time.Hour
)

// measure counts the last runs of source records, in buckets by the time at which they began: those
// of 5 s, or the last 120 if these took longer. So a burst is one sample, and the gap behind it no
// time.
type measure struct {
	ring    [kept]bucket
	current int64 // the number of the bucket in which runs begin
}

type bucket struct {
	at                        time.Duration
	began, ended, failed, bad int64
}

// known reports whether nearly all of the bucket's runs have ended. What fails may end first.
func (b *bucket) known() bool { return b.ended > 0 && 20*b.ended >= 19*b.began }

func (m *measure) of(number int64) *bucket { return &m.ring[number%kept] }

// begin registers that runs begin, and returns the number of their bucket. If runs take so long
// that few of the buckets are known, the current one becomes larger.
func (m *measure) begin(now time.Duration, n int64) int64 {
	b, late := m.of(m.current), m.of(m.current+1+buckets)
	full := b.began >= bucketRuns && now-b.at >= bucketTime
	if b.began == 0 || full && (late.began == 0 || late.known() || now-late.at >= latest) {
		m.current++
		b = m.of(m.current)
		*b = bucket{at: now}
	}
	b.began += n
	return m.current
}

// end registers how runs of a bucket ended.
func (m *measure) end(number int64, o Outcome, n int64) {
	if number <= max(m.current-kept, 0) || number > m.current {
		return
	}
	b := m.of(number)
	if o == Void {
		b.began -= n
		return
	}
	b.ended += n
	if o.bad() {
		b.bad += n
	}
	if o.failed() {
		b.failed += n
	}
}

// newest yields the buckets that are not old, the newest one first.
func (m *measure) newest(now time.Duration) iter.Seq[*bucket] {
	return func(yield func(*bucket) bool) {
		for number := m.current; number > m.current-kept && number > 0; number-- {
			b := m.of(number)
			if b.began == 0 {
				continue // its runs were none
			}
			if now-b.at >= old || !yield(b) {
				return
			}
		}
	}
}

// known yields the buckets nearly all of whose runs have ended, the newest one first.
func (m *measure) known(now time.Duration) iter.Seq[*bucket] {
	return func(yield func(*bucket) bool) {
		for b := range m.newest(now) {
			if b.known() && !yield(b) {
				return
			}
		}
	}
}

// sum returns how many runs the measure has, how many of these failed retryably, and how many were
// bad. full reports whether it has all its buckets.
func (m *measure) sum(now time.Duration) (runs, failed, bad int64, full bool) {
	n := 0
	for b := range m.known(now) {
		runs, failed, bad = runs+b.ended, failed+b.failed, bad+b.bad
		if n++; n == buckets {
			return runs, failed, bad, true
		}
	}
	return runs, failed, bad, false
}

// least returns what the newest buckets have, known or not: of the runs that began, so many failed
// at least.
func (m *measure) least(now time.Duration) (runs, failed, bad int64) {
	n := 0
	for b := range m.newest(now) {
		runs, failed, bad = runs+b.began, failed+b.failed, bad+b.bad
		if n++; n == buckets {
			break
		}
	}
	return runs, failed, bad
}

// outweighs reports whether the last runs, as many as are needed and at least those of sum, have
// enough bad ones, of which a good one outweighs those of a share half way from hold to 1: a CUSUM
// test (Page, 1954), by buckets. The newest ones have to have the share hold by themselves: what is
// back again is not held.
func (m *measure) outweighs(now time.Duration, hold float64) (runs, bad int64, ok bool) {
	n, newest, some := 0, true, (1+hold)/less(hold)
	for b := range m.known(now) {
		runs, bad = runs+b.ended, bad+b.bad
		if newest && runs >= enough {
			if newest = false; float64(bad) < hold*float64(runs) {
				return 0, 0, false
			}
		}
		if n++; n >= buckets && float64(bad)-float64(runs-bad)*some >= evidence {
			return runs, bad, true
		}
	}
	return runs, bad, false
}

// clear forgets all runs, also those that have not ended.
func (m *measure) clear() { *m = measure{current: m.current + kept} }

// less returns what a share leaves, and very little in place of nothing.
func less(share float64) float64 { return max(1-share, 1e-9) }
