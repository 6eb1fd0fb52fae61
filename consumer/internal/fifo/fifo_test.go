package fifo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestFifo_IsAQueueThatReusesItsRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var model []int
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 50).Draw(t, "n") {
					n++
					q.Push(n)
					model = append(model, n)
				}
			},
			"push in front": func(*rapid.T) {
				n++
				q.PushFront(n)
				model = slices.Insert(model, 0, n)
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(0, min(40, len(model))).Draw(t, "n") {
					if got := *q.Head(); got != model[0] {
						t.Fatalf("head is %d, want %d", got, model[0])
					}
					if got := q.Pop(); got != model[0] {
						t.Fatalf("popped %d, want %d", got, model[0])
					}
					model = model[1:]
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(model) {
					t.Fatalf("length %d, want %d", q.Len(), len(model))
				}
				for _, v := range q.items[:q.first] {
					if v != 0 {
						t.Fatalf("%d was popped and is kept", v)
					}
				}
			},
		})
	})
}

func TestFifo_NeverEmptyDoesNotGrow(t *testing.T) {
	t.Parallel()
	var q Queue[int]
	for i := range 100 {
		q.Push(i)
	}
	for i := range 100_000 {
		q.Push(i)
		q.Pop()
	}
	if got := cap(q.items); got > 1000 {
		t.Errorf("room for %d, want a few times the hundred that it holds", got)
	}
}
