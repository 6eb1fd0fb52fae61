// Package backoff says how long to wait before another try. It knows nothing of what is tried.
package backoff

import "time"

// Of returns the wait before a try, the first being 1: base, doubled with each try, at most limit.
func Of(try int, base, limit time.Duration) time.Duration {
	if try > 20 || base<<(try-1) > limit {
		return limit
	}
	return base << (try - 1)
}
