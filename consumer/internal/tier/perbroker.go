package tier

import (
	"context"
	"errors"
	"sync"
	"time"
)

// perBroker bounds how many requests a broker has at a time.
type perBroker struct {
	limit int
	mu    sync.Mutex
	slots map[int32]chan struct{}
}

// errCrowded says that others had the slots for so long that the leader may be another one by now.
var errCrowded = errors.New("others are served")

// acquire waits for a slot, for as long as an answer may take. release gives it back.
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
