package console

import (
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/api"
)

const (
	// meterSpan is the time over which the rate of a run is measured, and leastSpan the shortest
	// one that says something.
	meterSpan = 20 * time.Second
	leastSpan = 2 * time.Second
	// mostMetered bounds the runs that are measured.
	mostMetered = 1000
)

// meter measures how fast runs send, from what pages have seen of them. It is safe for concurrent
// use.
type meter struct {
	mu sync.Mutex
	of map[string][]sample // by the runs' keys, oldest first
}

// sample is how many letters a run had sent at a time by its owner's clock.
type sample struct {
	at   time.Time
	sent int64
}

// runKey identifies a run.
func runKey(topic, id string) string { return topic + "/" + id }

// observe returns how many letters a second a run sends; known is false before two looks.
func (m *meter) observe(r *api.Run) (perSecond float64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := runKey(r.Topic, r.ID)
	if isOver(r) {
		delete(m.of, key)
		return 0, false
	}
	if m.of == nil || len(m.of) >= mostMetered {
		m.of = map[string][]sample{}
	}
	all := m.of[key]
	if n := len(all); n == 0 || r.Heartbeat.After(all[n-1].at) {
		all = append(all, sample{r.Heartbeat, r.Counts.Sent})
	}
	for len(all) > 2 && all[len(all)-1].at.Sub(all[1].at) >= meterSpan {
		all = all[1:]
	}
	m.of[key] = all
	first, last := all[0], all[len(all)-1]
	if last.at.Sub(first.at) < leastSpan {
		return 0, false
	}
	return float64(last.sent-first.sent) / last.at.Sub(first.at).Seconds(), true
}
