package consumer

import (
	"time"
)

// backoff doubles from base to limit.
func backoff(try int, base, limit time.Duration) time.Duration {
	if try > 20 || base<<(try-1) > limit {
		return limit
	}
	return base << (try - 1)
}
