package consumer

import (
	"context"
	"sync"
)

// membership is the lock of commits, which also knows whether the member is joining. kgo holds commits back then, on a
// lock that no context ends; so siding waits by itself.
//
// kgo ends every session with a revoke or a loss, and begins every one with an assignment, each of which may be empty. So
// a join is under way from the end of the one callback to the beginning of the next.
type membership struct {
	lock    chan struct{} // holds one token; a channel, so that waiting for it can be given up
	joining bool          // guarded by lock
	settled chan struct{} // closed when a join is over; guarded by lock

	mu     sync.Mutex
	cancel context.CancelFunc // ends the commit that is under way
}

func newMembership() *membership {
	return &membership{lock: make(chan struct{}, 1), joining: true, settled: make(chan struct{})}
}

// hold takes the lock at a moment when the member is not joining. The context that it returns ends with ctx, and when the
// membership is lost.
func (m *membership) hold(ctx context.Context) (held context.Context, release func(), err error) {
	for {
		select {
		case m.lock <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if !m.joining {
			break
		}
		settled := m.settled
		<-m.lock
		select {
		case <-settled:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	held, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	m.cancel = cancel
	m.mu.Unlock()
	return held, func() {
		cancel()
		<-m.lock
	}, nil
}

// set says whether a join is under way; it waits for the commit that is.
func (m *membership) set(joining bool) {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	switch {
	case m.joining == joining:
	case joining:
		m.settled = make(chan struct{})
	default:
		close(m.settled)
	}
	m.joining = joining
}

// lost is set(true) after a loss: the commit that is under way is void, and is not waited for.
func (m *membership) lost() {
	m.mu.Lock()
	if m.cancel != nil {
		m.cancel()
	}
	m.mu.Unlock()
	m.set(true)
}
