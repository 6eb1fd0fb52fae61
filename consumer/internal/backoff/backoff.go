// Package backoff computes the wait before another try.
package backoff

import "time"

// Of returns the wait before the given try: base before the first, which is 1, then twice as long
// before each, up to limit.
func Of(try int, base, limit time.Duration) time.Duration {
	if try > 20 || base<<(try-1) > limit {
		return limit
	}
	return base << (try - 1)
}
