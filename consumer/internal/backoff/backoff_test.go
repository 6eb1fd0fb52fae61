package backoff

import (
	"math"
	"testing"
	"time"
)

func TestOf_DoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for try, want := range map[int]time.Duration{1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 6: 8 * time.Second, 7: 15 * time.Second, 20: 15 * time.Second, 21: 15 * time.Second, math.MaxInt: 15 * time.Second} {
		if got := Of(try, 250*time.Millisecond, 15*time.Second); got != want {
			t.Errorf("try %d waits %v, want %v", try, got, want)
		}
	}
}
