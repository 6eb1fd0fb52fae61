package consumer

// fifo is a queue that reuses its room.
type fifo[T any] struct {
	items []T
	first int
}

func (q *fifo[T]) len() int { return len(q.items) - q.first }

func (q *fifo[T]) push(v T) {
	if q.first > 32 && q.first > len(q.items)/2 {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, v)
}

func (q *fifo[T]) pushFront(v T) {
	if q.first > 0 {
		q.first--
		q.items[q.first] = v
		return
	}
	q.items = append(q.items, v)
	copy(q.items[1:], q.items)
	q.items[0] = v
}

// head is the front element; the queue must not be empty.
func (q *fifo[T]) head() *T { return &q.items[q.first] }

func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.first]
	q.items[q.first] = zero
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return v
}
