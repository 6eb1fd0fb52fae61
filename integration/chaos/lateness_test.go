package chaos

import (
	"testing"
	"time"
)

// A run on a machine without idle time broke rules that bound times, and nothing said why. A second
// counts once, however often a timer was late in it.
func TestLateness_CountsSeconds(t *testing.T) {
	t.Parallel()
	l, late := Lateness{}, -1
	for _, at := range []struct {
		second int
		by     time.Duration
	}{{0, time.Millisecond}, {1, 99 * time.Millisecond}, {2, 100 * time.Millisecond}, {2, 700 * time.Millisecond}, {3, 0}, {9, time.Second}, {9, 2 * time.Second}} {
		late = l.look(at.by, at.second, late)
	}
	if want := (Lateness{Seconds: 2, Of: 10, Worst: 2000}); l != want {
		t.Errorf("got %v, want %v", l, want)
	}
}
