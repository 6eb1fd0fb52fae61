package retrytopics

import "time"

// Common retry schedules. The total is the time from the first failure to the
// dead-letter topic when every retry fails, without queueing and jitter.
//
//	schedule     tiers                 total       suits
//	Default      5s 30s 5m             5m35s       faults of seconds to minutes: restarts, failovers, rate limits
//	Aggressive   10s 1m 5m             6m10s       orders: somebody waits, and after minutes a person should look
//	Standard     1m 30m 3h             3h31m       notifications: late is fine, a gateway's incident lasts an hour or two
//	Patient      5m 1h 6h              7h5m        analytics: nobody waits, and few retries leave a sick sink alone
//	Cautious     1m 10m 1h 4h 12h      17h11m      payments: probe gently, then outlast a provider's bad day;
//	                                               audit: a record that must arrive, however late
//
// They are plain slices for [Naming.Siblings] and a consumer's policy. Copy one
// before changing it.
var (
	Default    = []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}
	Aggressive = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute}
	Standard   = []time.Duration{time.Minute, 30 * time.Minute, 3 * time.Hour}
	Patient    = []time.Duration{5 * time.Minute, time.Hour, 6 * time.Hour}
	Cautious   = []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour}
)
