package redrive

import (
	"testing"
	"time"
)

// A process that is frozen has tried nothing meanwhile.
func TestPatience_IsNotSpentAsleep(t *testing.T) {
	t.Parallel()
	left := patience(fencePatience)
	left.spend(time.Hour)
	if want := patience(fencePatience - fenceRound); left != want {
		t.Errorf("after a round within which it slept for an hour %v are left, want %v", time.Duration(left), time.Duration(want))
	}
	for range 25 {
		left.spend(time.Second)
	}
	if left > 0 {
		t.Errorf("%v are left after it was awake for so long", time.Duration(left))
	}
}
