package logthrottle

import (
	"maps"
	"sync"
	"time"
)

// Throttle keeps a message that would come with every poll or every record from filling the log.
type Throttle struct {
	mu      sync.Mutex
	last    map[string]*throttled
	swept   time.Time
	pending throttled // all keys that there is no room for
}

type throttled struct {
	next time.Time // when it may be said again
	more int       // times that it was not said since
}

// maxThrottled bounds the keys that are remembered. Further ones share a place, so that neither
// memory nor the log grows with them.
const maxThrottled = 1000

// Every is the usual interval, and that of the messages that share a place.
const Every = 10 * time.Second

// Once runs f unless it did so for the same key within the interval.
func (q *Throttle) Once(key string, every time.Duration, f func()) {
	if _, due := q.Due([]byte(key), every); due {
		f()
	}
}

// Due reports whether the message of that key is to be said now: the first time, and then once an
// interval. times is how often it came since it was last said, this time included. Of a key that is
// known nothing is kept.
func (q *Throttle) Due(key []byte, every time.Duration) (times int, due bool) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.last[string(key)]
	switch {
	case s != nil:
	case len(q.last) >= maxThrottled && !q.sweep(now):
		return q.pending.arrive(now, Every)
	case q.last == nil:
		q.last = map[string]*throttled{}
		fallthrough
	default:
		s = new(throttled)
		q.last[string(key)] = s
	}
	return s.arrive(now, every)
}

// arrive notes that the message came.
func (s *throttled) arrive(now time.Time, every time.Duration) (times int, due bool) {
	if now.Before(s.next) {
		s.more++
		return 0, false
	}
	times = s.more + 1
	*s = throttled{next: now.Add(every)}
	return times, true
}

// sweep forgets the messages whose interval is over, and reports whether there is room for another.
// The caller holds the lock.
func (q *Throttle) sweep(now time.Time) bool {
	if now.Sub(q.swept) >= time.Second {
		q.swept = now
		maps.DeleteFunc(q.last, func(_ string, s *throttled) bool { return !now.Before(s.next) })
	}
	return len(q.last) < maxThrottled
}
