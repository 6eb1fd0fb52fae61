package guard

import (
	"testing"
	"time"
)

// Retries are a fifth of all runs, or one a second. What is saved for a burst is bounded.
func TestBudget_BoundsRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate, free int // one of so many costs nothing
		want       int // retries in 100 s
	}{
		{0, 0, 100}, {2, 0, 100}, {20, 0, 500}, {500, 0, 12500}, {20, 2, 1000},
	} {
		g := New(defaults)
		g.state = Strained
		var m measure
		got := 0
		b := &g.budget
		for now := time.Duration(0); now < 100*time.Second; now += time.Millisecond {
			if ms := int(now / time.Millisecond); tt.rate > 0 && ms%(1000/min(tt.rate, 1000)) == 0 {
				b.source(now, 1)
				m.end(m.begin(now, 1), Good, 1)
			}
			for b.has(now, &m) {
				if got++; tt.free == 0 || got%tt.free > 0 {
					b.tokens--
				}
			}
		}
		if low, high := tt.want-tt.want/20-saved, tt.want+tt.want/20+saved; got < low || got > high {
			t.Errorf("%d runs a second: %d retries in 100 s, want %d", tt.rate, got, tt.want)
		}
	}
}

// While nothing is wrong, retries cost something if they fail: what an outage left drains at full
// speed, and poison does not.
func TestBudget_GoodRetriesAreFree(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		o    Outcome
		want int
	}{{Good, 64 * 1000}, {Void, 64 * 1000}, {Failed, 10 + 1000}, {Defect, 10 + 1000}} {
		g, got := New(defaults), 0
		for now := time.Duration(0); now < 1000*time.Second; now += time.Second {
			var runs []Run
			for range 64 {
				if r, ok := g.Retry(now); ok {
					runs = append(runs, r)
				}
			}
			got += len(runs)
			for _, r := range runs {
				g.End(now+time.Millisecond, r, tt.o)
			}
		}
		if got > tt.want+100 || got < tt.want-100 {
			t.Errorf("outcome %v: %d retries in 1000 s, want %d", tt.o, got, tt.want)
		}
	}
}

// A burst earns what it may, and long idleness no more than that.
func TestBudget_SavesOfABurst(t *testing.T) {
	t.Parallel()
	g := New(defaults)
	g.state, g.budget.tokens = Strained, 0
	n := 0
	for ; n < 100_000; n++ {
		if _, ok := g.Retry(10 * time.Hour); !ok {
			break
		}
	}
	if n != saved {
		t.Errorf("%d retries after ten hours, want %d", n, saved)
	}
	g = New(defaults)
	g.Ran(0, Good, 4000)
	g.state = Strained
	for n = 0; n < 100_000; n++ {
		if _, ok := g.Retry(10 * time.Second); !ok {
			break
		}
	}
	if n != 1000 {
		t.Errorf("%d retries after a burst of 4000, want 1000", n)
	}
}
