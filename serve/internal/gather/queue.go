package gather

import (
	"context"
	"sync"
)

// Queue gathers calls by key. The zero value is ready for use, by several goroutines.
type Queue[T, R any] struct {
	mu      sync.Mutex
	waiting map[string]*batch[T, R]
}

// batch is the calls of a key that wait.
type batch[T, R any] struct {
	items  []T
	done   chan struct{} // closed when result and err are set
	result R
	err    error
}

// Do adds an item to the call of a key, and returns its result and with how many items it was made.
// The first caller makes it: ready returns when it is time, and until then others join. If ctx ends
// meanwhile, Do returns its cause, unless it makes the call.
func (q *Queue[T, R]) Do(ctx context.Context, key string, item T, ready func(), call func(items []T) (R, error)) (result R, n int, err error) {
	q.mu.Lock()
	if b := q.waiting[key]; b != nil {
		b.items = append(b.items, item)
		q.mu.Unlock()
		select {
		case <-b.done:
			return b.result, len(b.items), b.err
		case <-ctx.Done():
			return result, 0, context.Cause(ctx)
		}
	}
	b := &batch[T, R]{items: []T{item}, done: make(chan struct{})}
	if q.waiting == nil {
		q.waiting = map[string]*batch[T, R]{}
	}
	q.waiting[key] = b
	q.mu.Unlock()
	defer close(b.done)
	ready()
	q.mu.Lock()
	delete(q.waiting, key)
	q.mu.Unlock()
	b.result, b.err = call(b.items)
	return b.result, len(b.items), b.err
}
