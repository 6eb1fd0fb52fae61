package watch

import (
	"maps"
	"sync"
	"time"

	"github.com/sidingkafka/siding/serve/internal/letterindex"
)

// NewWithin is the time in which the letters of Thresholds.New come.
const NewWithin = 5 * time.Minute

// countEvery is how often what came is counted, at most.
const countEvery = NewWithin / 10

// arrival is how many letters of each class had come at a moment, by the clock of this server.
type arrival struct {
	at      time.Time
	written map[string]int64
}

// Arrivals are how many letters of a topic came of late. It is safe for concurrent use.
type Arrivals struct {
	index *letterindex.Index

	mu  sync.Mutex
	all []arrival // within newWithin, the oldest first
}

// Recent returns by class how many letters came within newWithin: by their timestamps, or as this
// server saw them come, if those are more. Producers set timestamps, and the clock of one may be
// slow. What came while the server did not look goes by its timestamp alone. written counts what
// came while it looked.
func (a *Arrivals) Recent(now time.Time, written map[string]int64) map[string]int64 {
	recent := a.index.EnteredBy(now.Add(-NewWithin), now.Add(time.Millisecond))
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.all) > 0 && now.Sub(a.all[0].at) > NewWithin {
		a.all = a.all[1:]
	}
	if n := len(a.all); n == 0 || now.Sub(a.all[n-1].at) >= countEvery {
		a.all = append(a.all, arrival{now, maps.Clone(written)})
	}
	for class, n := range written {
		if came := n - a.all[0].written[class]; came > recent[class] {
			recent[class] = came
		}
	}
	return recent
}

// Total returns the sum of counts.
func Total(counts map[string]int64) (n int64) {
	for _, of := range counts {
		n += of
	}
	return n
}
