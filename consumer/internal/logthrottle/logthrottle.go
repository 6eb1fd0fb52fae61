package logthrottle

import (
	"maps"
	"sync"
	"time"
)

// Throttle decides which of many equal messages is logged. The zero value is ready. Its methods are
// safe for concurrent use.
type Throttle struct {
	mu      sync.Mutex
	last    map[string]*throttled
	swept   time.Time
	pending throttled // all keys beyond maxThrottled
}

type throttled struct {
	next time.Time // when it may be logged again
	more int       // times that it was held back since
}

// maxThrottled bounds the keys in memory. Further keys share one entry, so that neither memory nor
// the log grows with them.
const maxThrottled = 1000

// Every is the usual interval. Keys beyond the bound, which share one entry, always have it.
const Every = 10 * time.Second

// Once runs f, unless the same key had its turn within the interval.
func (q *Throttle) Once(key string, every time.Duration, f func()) {
	if _, due := q.Due([]byte(key), every); due {
		f()
	}
}

// Due reports whether the message of the key is to be logged now: the first time, then once an
// interval. times counts its arrivals since it was last logged, this one included. Due keeps no
// reference to key.
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

// arrive counts a message.
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
