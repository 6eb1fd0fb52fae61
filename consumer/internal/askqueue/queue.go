package askqueue

import "sync"

// Queue holds each lane that asks, once. The methods are safe for concurrent use.
type Queue[Lane comparable] struct {
	mu    sync.Mutex
	lanes map[Lane]struct{}
	wake  chan struct{} // capacity 1
}

// New makes an empty queue.
func New[Lane comparable]() *Queue[Lane] {
	return &Queue[Lane]{lanes: map[Lane]struct{}{}, wake: make(chan struct{}, 1)}
}

// Asked has a value after a lane was added, until it is received.
func (q *Queue[Lane]) Asked() <-chan struct{} { return q.wake }

// Add adds a lane, and signals that it asks.
func (q *Queue[Lane]) Add(l Lane) {
	q.Keep(l)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Keep adds a lane, which is taken when another one is.
func (q *Queue[Lane]) Keep(l Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lanes[l] = struct{}{}
}

// Take empties the queue.
func (q *Queue[Lane]) Take() []Lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make([]Lane, 0, len(q.lanes))
	for l := range q.lanes {
		all = append(all, l)
	}
	clear(q.lanes)
	return all
}
