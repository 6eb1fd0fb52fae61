package redrive

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
)

// A late timer lost the tokens that a full bucket could not hold: with a burst of one, half of
// 1,000 a second.
func TestBucket_KeepsItsRateWhoeverComesLate(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, c := range []struct {
		rate  float64
		burst int
		late  time.Duration
	}{
		{1000, 1, 2 * time.Millisecond},
		{1000, 1, 50 * time.Millisecond},
		{50, 1, 20 * time.Millisecond},
		{50, 5, 90 * time.Millisecond},
		{3, 1, 50 * time.Millisecond},
		{20_000, 1, 10 * time.Millisecond},
		{1000, 100, 30 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			start := time.Unix(0, 0)
			b := newBucket(c.rate, c.burst, start)
			var at []time.Time
			for now := start; now.Sub(start) < time.Minute; {
				if wait := b.take(now); wait > 0 {
					now = now.Add(wait + rand.N(c.late))
					b.pace(c.rate, now) // as the engine does
					continue
				}
				at = append(at, now)
			}
			if want := 60 * c.rate; float64(len(at)) < 0.99*want-1 || float64(len(at)) > 1.01*want+float64(c.burst) {
				t.Errorf("%d were taken in a minute, want %.0f", len(at), want)
			}
			most := int(c.rate + max(float64(c.burst), c.rate*maxLate.Seconds()) + 1)
			for i := range at {
				if j := i + most; j < len(at) && at[j].Sub(at[i]) < time.Second {
					t.Fatalf("%d were taken within %v", most+1, at[j].Sub(at[i]))
				}
			}
		})
	}
}

// Tokens that were not taken during a pause are not made up for.
func TestBucket_HasNoMoreThanItsSizeAfterAPause(t *testing.T) {
	t.Parallel()
	for _, waits := range []bool{false, true} {
		now := time.Unix(0, 0)
		b := newBucket(1000, 3, now)
		taken := func() (n int) {
			for b.take(now) == 0 {
				n++
			}
			return n
		}
		if n := taken(); n != 3 {
			t.Errorf("%d are taken at first, want 3", n)
		}
		if waits { // in time
			now = now.Add(b.take(now))
			if n := taken(); n != 1 {
				t.Errorf("%d are taken in time, want 1", n)
			}
		}
		now = now.Add(time.Minute)
		b.pace(1000, now)
		if n := taken(); n != 3 {
			t.Errorf("%d are taken after a pause, want 3", n)
		}
	}
}
