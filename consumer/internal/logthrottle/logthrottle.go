package logthrottle

import (
	"maps"
	"sync"
	"time"
)

// Throttle lets one of many equal messages through and drops the others. Where the number of the
// others matters, use [Storms]. The zero value is ready. Its methods are safe for concurrent use.
type Throttle struct {
	mu    sync.Mutex
	next  map[string]time.Time // when the message of a key may be logged again
	swept time.Time
	rest  time.Time // the same for all keys beyond maxThrottled
}

// maxThrottled bounds the keys in memory. Further keys share one entry, so that neither memory nor
// the log grows with them.
const maxThrottled = 1000

// Every is the usual interval. Keys beyond the bound, which share one entry, always have it.
const Every = 10 * time.Second

// Once runs f, unless the same key had its turn within the interval.
func (q *Throttle) Once(key string, every time.Duration, f func()) {
	if q.due(key, every) {
		f()
	}
}

func (q *Throttle) due(key string, every time.Duration) bool {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	next, known := q.next[key]
	switch {
	case known && now.Before(next):
		return false
	case !known && len(q.next) >= maxThrottled && !q.sweep(now):
		if now.Before(q.rest) {
			return false
		}
		q.rest = now.Add(Every)
		return true
	case q.next == nil:
		q.next = map[string]time.Time{}
	}
	q.next[key] = now.Add(every)
	return true
}

// sweep forgets the messages whose interval is over, and reports whether there is room for another.
// The caller holds the lock.
func (q *Throttle) sweep(now time.Time) bool {
	if now.Sub(q.swept) >= time.Second {
		q.swept = now
		maps.DeleteFunc(q.next, func(_ string, next time.Time) bool { return !now.Before(next) })
	}
	return len(q.next) < maxThrottled
}
