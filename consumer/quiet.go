package consumer

import (
	"sync"
	"time"
)

// quiet keeps a message that would come with every poll from filling the log.
type quiet struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// say runs f unless it did so for the same key within the interval.
func (q *quiet) say(key string, every time.Duration, f func()) {
	q.mu.Lock()
	if q.last == nil || len(q.last) > 1000 {
		q.last = map[string]time.Time{}
	}
	last, said := q.last[key]
	if said && time.Since(last) < every {
		q.mu.Unlock()
		return
	}
	q.last[key] = time.Now()
	q.mu.Unlock()
	f()
}
