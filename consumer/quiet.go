package consumer

import (
	"sync"
	"time"
)

// quiet keeps a message that would come with every poll or every record from filling the log.
type quiet struct {
	mu   sync.Mutex
	last map[string]said
}

type said struct {
	at   time.Time
	more int // times that it was not said since
}

// say runs f unless it did so for the same key within the interval.
func (q *quiet) say(key string, every time.Duration, f func()) {
	if _, due := q.due(key, every); due {
		f()
	}
}

// due reports whether the message of that key is to be said now: the first time, and then once an interval. times is how
// often it came since it was last said, this time included.
func (q *quiet) due(key string, every time.Duration) (times int, due bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil || len(q.last) > 1000 {
		q.last = map[string]said{}
	}
	s, before := q.last[key]
	if before && time.Since(s.at) < every {
		s.more++
		q.last[key] = s
		return 0, false
	}
	q.last[key] = said{at: time.Now()}
	return s.more + 1, true
}
