package guard

import (
	"slices"
	"time"
)

// mostRests bounds how many rests are remembered. An older one no longer counts.
const mostRests = 256

// Rests are the times during which the records of a topic waited, in order. The zero value has
// none.
type Rests struct{ all []rest }

// rest lasts until now while its end is zero.
type rest struct{ from, to time.Time }

// Begin begins a rest, unless one goes on.
func (r *Rests) Begin(now time.Time) {
	if n := len(r.all); n > 0 && r.all[n-1].to.IsZero() {
		return
	}
	if len(r.all) == mostRests {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, rest{from: now})
}

// End ends the rest that goes on.
func (r *Rests) End(now time.Time) {
	if n := len(r.all); n > 0 && r.all[n-1].to.IsZero() {
		r.all[n-1].to = now
	}
}

// Since returns how much of the time between since and now was rest.
func (r *Rests) Since(since, now time.Time) (sum time.Duration) {
	for _, at := range slices.Backward(r.all) {
		from, to := at.from, at.to
		if to.IsZero() || to.After(now) {
			to = now
		}
		if from.Before(since) {
			from = since
		}
		if d := to.Sub(from); d > 0 {
			sum += d
		}
	}
	return sum
}
