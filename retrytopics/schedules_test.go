package retrytopics

import (
	"testing"
	"time"
)

func TestSchedules_AreLegal(t *testing.T) {
	t.Parallel()
	for _, delays := range [][]time.Duration{Default, Aggressive, Standard, Patient, Cautious} {
		mustSiblings(t, Naming{}, "orders", delays...)
	}
}
