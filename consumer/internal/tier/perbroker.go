package tier

import (
	"context"
	"errors"
	"sync"
	"time"
)

// perBroker bounds the requests in flight to each broker.
type perBroker struct {
	limit int
	mu    sync.Mutex
	slots map[int32]chan struct{}
}

// errCrowded reports that other requests had the broker's slots for so long that the leader may
// have changed.
var errCrowded = errors.New("the broker has too many requests in flight")

// acquire waits for a slot, at most refetchTimeout. release gives it back.
func (p *perBroker) acquire(ctx context.Context, broker int32) (release func(), err error) {
	p.mu.Lock()
	slots := p.slots[broker]
	if slots == nil {
		if p.slots == nil {
			p.slots = map[int32]chan struct{}{}
		}
		slots = make(chan struct{}, p.limit)
		p.slots[broker] = slots
	}
	p.mu.Unlock()
	t := time.NewTimer(refetchTimeout)
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-t.C:
		return nil, errCrowded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
