package fifo

// Queue is a queue that reuses its memory. The zero value is empty.
type Queue[T any] struct {
	items []T
	first int
}

// Len returns the number of elements.
func (q *Queue[T]) Len() int { return len(q.items) - q.first }

// Push puts an element at the end.
func (q *Queue[T]) Push(v T) {
	if q.first > 32 && q.first > len(q.items)/2 {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

// PushFront puts an element in front of all others.
func (q *Queue[T]) PushFront(v T) {
	if q.first > 0 {
		q.first--
		q.items[q.first] = v
		return
	}
	q.items = append(q.items, v)
	copy(q.items[1:], q.items)
	q.items[0] = v
}

// All returns the elements, the front one first. The slice is the queue's own.
func (q *Queue[T]) All() []T { return q.items[q.first:] }

// Remove takes out the i-th element of All.
func (q *Queue[T]) Remove(i int) T {
	v := q.items[q.first+i]
	copy(q.items[q.first+1:q.first+i+1], q.items[q.first:q.first+i])
	q.items[q.first] = v
	return q.Pop()
}

// Head returns the front element, in place. The queue must not be empty.
func (q *Queue[T]) Head() *T { return &q.items[q.first] }

// Pop takes out the front element. The queue must not be empty.
func (q *Queue[T]) Pop() T {
	var zero T
	v := q.items[q.first]
	q.items[q.first] = zero
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return v
}
