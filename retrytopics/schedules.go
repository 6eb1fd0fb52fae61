package retrytopics

import "time"

// Common retry schedules. The total is the time from the first failure to the dead-letter topic
// when every retry fails, without queueing and jitter.
//
//	schedule    tiers             total   suits
//	Default     5s 30s 5m         5m35s   short faults: restarts, failovers, rate limits
//	Aggressive  10s 1m 5m         6m10s   a user waits, and soon a person should look
//	Standard    1m 30m 3h         3h31m   late is fine, outages last an hour or two
//	Patient     5m 1h 6h          7h5m    no hurry, and few retries
//	Cautious    1m 10m 1h 4h 12h  17h11m  what has to outlast a provider's bad day
//
// They are plain slices for [Naming.Siblings] and a consumer's policy. Copy one before changing it.
// [Exponential] makes others. docs/policies.md in the repository has whole policies by topic.
var (
	Default    = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}
	Aggressive = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}
	Standard   = []time.Duration{time.Minute, 30 * time.Minute, 3 * time.Hour}
	Patient    = []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour}
	Cautious   = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour}
)

// Exponential returns a schedule of n delays. The first is first, each other is twice the one
// before it, and none exceeds longest.
//
// Tiers are strictly ascending, so longest occurs once: where doubling reaches it, it is the last
// delay, and the schedule has fewer than n. A policy whose MaxAttempts is larger than 1 + the
// number of tiers repeats that last tier. Each tier is a topic with as many partitions as the
// source: four delays that are far apart serve as well as eight that are close.
//
// The delays are exact, and they name the topics: 15s, 30s or 1m as the first gives short names
// (1m 2m 4m 8m 16m 32m), while 1s gives 1m4s and 2m8s.
//
// With n = 0 there is no delay: the slice is empty and not nil, which switches retries off.
// Exponential has no error, so that it can stand in a literal. Of bad arguments (first or longest
// not positive or not whole milliseconds, longest below first, n negative) it makes a schedule that
// [Check], [Naming.Siblings] and a consumer's New refuse, with the delay that is wrong.
func Exponential(first, longest time.Duration, n int) []time.Duration {
	switch {
	case n < 0:
		return []time.Duration{0}
	case first <= 0, longest < first:
		return []time.Duration{first, longest}
	}
	delays := []time.Duration{}
	for d := first; len(delays) < n; d += min(d, longest-d) {
		delays = append(delays, d)
		if d == longest {
			break
		}
	}
	return delays
}
