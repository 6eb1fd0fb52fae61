package forward

import (
	"math"
	"testing"
)

func TestBatchLimits_AreTheLowerOfUserAndTopic(t *testing.T) {
	t.Parallel()
	var l BatchLimits
	of := l.Within(func(string) int32 { return 1_000_000 })
	for topic, n := range map[string]int64{"small": 9_000, "large": 2_000_000, "endless": math.MaxInt64, "tiny": 1} {
		l.Learn(topic, n)
	}
	for topic, want := range map[string]int32{"unknown": 1_000_000, "small": 9_000, "large": 1_000_000, "endless": 1_000_000, "tiny": leastBatch} {
		if got := of(topic); got != want {
			t.Errorf("%s: a batch may have %d bytes, want %d", topic, got, want)
		}
	}
}
