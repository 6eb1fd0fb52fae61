package retrytopics

import "time"

// Common retry schedules. The total is the time from the first failure to the dead-letter topic
// when every retry fails, without queueing and jitter.
//
//	schedule    tiers             total   suits
//	Default     5s 30s 5m         5m35s   short faults: restarts, failovers, rate limits
//	Aggressive  10s 1m 5m         6m10s   orders: a customer waits, and soon a person should look
//	Standard    1m 30m 3h         3h31m   notifications: late is fine, outages last an hour or two
//	Patient     5m 1h 6h          7h5m    analytics: no hurry, and few retries
//	Cautious    1m 10m 1h 4h 12h  17h11m  payments and audit: outlast a provider's bad day
//
// They are plain slices for [Naming.Siblings] and a consumer's policy. Copy one before changing it.
var (
	Default    = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}
	Aggressive = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}
	Standard   = []time.Duration{time.Minute, 30 * time.Minute, 3 * time.Hour}
	Patient    = []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour}
	Cautious   = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour}
)
