package redrive

import (
	"context"
	"sync"
)

// memoryBudget bounds the bytes of letters in memory. A letter counts from its reading to the
// commit of its transaction.
type memoryBudget struct {
	limit int64
	freed chan struct{} // wakes a waiting take; there is one at most

	mu   sync.Mutex
	used int64
}

func newMemoryBudget(most int64) *memoryBudget {
	return &memoryBudget{limit: most, freed: make(chan struct{}, 1)}
}

// take waits until there is room, and takes bytes, even if that is more than the room: the largest
// letter has to pass too. It reports false if ctx ended first.
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

// free returns bytes to the budget.
func (r *memoryBudget) free(bytes int64) {
	r.mu.Lock()
	r.used -= bytes
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
