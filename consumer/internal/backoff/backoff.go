// Package backoff computes waits that grow from failure to failure, and waits.
package backoff

import (
	"context"
	"time"
)

// Of returns the wait before the given try: base before the first, which is 1, then twice as long
// before each, up to limit.
func Of(try int, base, limit time.Duration) time.Duration {
	if try > 62 || base > limit>>(try-1) {
		return limit
	}
	return base << (try - 1)
}

// Wait waits for d. It reports false if ctx ends first.
func Wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
