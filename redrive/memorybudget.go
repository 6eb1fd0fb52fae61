package redrive

import (
	"context"
	"sync/atomic"
)

// memoryBudget bounds the bytes of letters in memory. A letter counts from its reading to the
// commit of its transaction. One goroutine takes, and others free.
type memoryBudget struct {
	limit int64
	used  atomic.Int64
	freed chan struct{} // wakes a waiting take
}

func newMemoryBudget(most int64) *memoryBudget {
	return &memoryBudget{limit: most, freed: make(chan struct{}, 1)}
}

// take waits until there is room, and takes bytes, even if that is more than the room: the largest
// letter has to pass too. It reports false if ctx ended first.
func (r *memoryBudget) take(ctx context.Context, bytes int64) bool {
	for r.used.Load() >= r.limit {
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
	r.used.Add(bytes)
	return true
}

// free returns bytes to the budget.
func (r *memoryBudget) free(bytes int64) {
	r.used.Add(-bytes)
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
