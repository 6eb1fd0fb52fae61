package redrive

import (
	"context"
	"sync"
)

// memoryBudget bounds the bytes of letters that are in memory: from when they are read until their
// transaction is committed.
type memoryBudget struct {
	limit int64
	freed chan struct{} // wakes who waits; one does at a time

	mu   sync.Mutex
	used int64
}

func newMemoryBudget(most int64) *memoryBudget {
	return &memoryBudget{limit: most, freed: make(chan struct{}, 1)}
}

// take waits until there is room left, and takes some, which may be more than is left: the largest
// letter has to go too. It reports false where ctx ended first.
func (r *memoryBudget) take(ctx context.Context, bytes int64) bool {
	for {
		r.mu.Lock()
		fits := r.used < r.limit
		if fits {
			r.used += bytes
		}
		r.mu.Unlock()
		if fits {
			return true
		}
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
}

// free gives some back.
func (r *memoryBudget) free(bytes int64) {
	r.mu.Lock()
	r.used -= bytes
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
