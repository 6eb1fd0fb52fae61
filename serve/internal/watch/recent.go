package watch

import (
	"maps"
	"time"
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

// Recent returns by class how many letters came within newWithin: by their timestamps, or as this
// server saw them come, if those are more. Producers set timestamps, and the clock of one may be
// slow. What came while the server did not look goes by its timestamp alone. written counts what
// came while it looked.
func (t *Topic) Recent(now time.Time, written map[string]int64) map[string]int64 {
	recent := t.Book.EnteredBy(now.Add(-NewWithin), now.Add(time.Millisecond))
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.arrivals) > 0 && now.Sub(t.arrivals[0].at) > NewWithin {
		t.arrivals = t.arrivals[1:]
	}
	if n := len(t.arrivals); n == 0 || now.Sub(t.arrivals[n-1].at) >= countEvery {
		t.arrivals = append(t.arrivals, arrival{now, maps.Clone(written)})
	}
	for class, n := range written {
		if came := n - t.arrivals[0].written[class]; came > recent[class] {
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
