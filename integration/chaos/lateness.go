package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// Lateness is how late timers of the run's own process were. Rules that bound times, and handlers'
// timeouts, need a machine that has time for all processes of the run.
type Lateness struct {
	// Seconds are those in which a timer was late by 100 ms or more, of so many.
	Seconds int `json:"late_seconds"`
	Of      int `json:"of_seconds"`
	// Worst is in milliseconds.
	Worst int64 `json:"worst_ms"`
}

// run looks until ctx ends.
func (l *Lateness) run(ctx context.Context) {
	began := time.Now()
	last, late := began, -1
	for tick := time.NewTicker(trace.LookEvery); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		now := time.Now()
		late = l.look(now.Sub(last)-trace.LookEvery, int(now.Sub(began)/time.Second), late)
		last = now
	}
}

// look records by how much a timer was late in a second of the run. It returns the last second in
// which one was.
func (l *Lateness) look(by time.Duration, second, late int) int {
	l.Of, l.Worst = second+1, max(l.Worst, by.Milliseconds())
	if by >= trace.LateBy && second > late {
		l.Seconds++
		return second
	}
	return late
}

func (l *Lateness) String() string {
	return fmt.Sprintf("timers were late by %v or more in %d of %d seconds, by %d ms at most", trace.LateBy, l.Seconds, l.Of, l.Worst)
}
