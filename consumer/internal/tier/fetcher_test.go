package tier

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// A broker that does not answer holds up its own partitions only, and those not for ever.
func TestPerBroker_BoundsEachBroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := perBroker{}
		var release func()
		for range 2 {
			var err error
			if release, err = p.acquire(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.acquire(t.Context(), 2); err != nil {
			t.Errorf("another broker: %v", err)
		}
		if _, err := p.acquire(t.Context(), 1); !errors.Is(err, errCrowded) {
			t.Errorf("without a slot: %v, want %v", err, errCrowded)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.acquire(over, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("after the lane's end: %v, want %v", err, context.Canceled)
		}
		release()
		if _, err := p.acquire(t.Context(), 1); err != nil {
			t.Errorf("with a slot: %v", err)
		}
	})
}
