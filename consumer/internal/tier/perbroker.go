package tier

import (
	"context"
	"errors"
	"sync"
	"time"
)

// perBroker bounds the requests in flight to each broker.
type perBroker struct {
	slots sync.Map // by broker's id: a channel with refetchesPerBroker places
}

// errCrowded reports that other requests had the broker's slots for so long that the leader may
// have changed.
var errCrowded = errors.New("the broker has too many requests in flight")

// acquire waits for a slot, at most refetchTimeout. release gives it back.
func (p *perBroker) acquire(ctx context.Context, broker int32) (release func(), err error) {
	found, _ := p.slots.LoadOrStore(broker, make(chan struct{}, refetchesPerBroker))
	slots := found.(chan struct{})
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-time.After(refetchTimeout):
		return nil, errCrowded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
