package consumer

import (
	"context"
	"sync"
)

// membership knows whether the member is joining. kgo holds commits back then, on a lock that no context ends; so siding
// waits by itself, and does not hold its own commit lock meanwhile.
//
// kgo ends every session with a revoke or a loss, and begins every one with an assignment, each of which may be empty. So
// a join is under way from the end of the one callback to the beginning of the next.
type membership struct {
	joining bool          // guarded by the commit lock
	settled chan struct{} // closed when a join is over
}

func newMembership() membership { return membership{joining: true, settled: make(chan struct{})} }

// hold locks the commit lock at a moment when the member is not joining.
func (m *membership) hold(ctx context.Context, commitMu *sync.Mutex) error {
	for {
		commitMu.Lock()
		if !m.joining {
			return nil
		}
		settled := m.settled
		commitMu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// set says whether a join is under way; it waits for a commit that is.
func (m *membership) set(joining bool, commitMu *sync.Mutex) {
	commitMu.Lock()
	defer commitMu.Unlock()
	switch {
	case m.joining == joining:
	case joining:
		m.settled = make(chan struct{})
	default:
		close(m.settled)
	}
	m.joining = joining
}
