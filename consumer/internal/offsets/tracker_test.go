package offsets

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveTracker is the obvious model: the unfinished offsets, in order, and the end of what was
// delivered.
type naiveTracker struct {
	next    int64
	pending []int64
}

func (n *naiveTracker) floor() int64 {
	if len(n.pending) == 0 {
		return n.next
	}
	return n.pending[0]
}

func TestTracker_AgreesWithANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		tr := New(start, -1)
		model := naiveTracker{next: start}
		t.Repeat(map[string]func(*rapid.T){
			"deliver with gaps": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					at := model.next + rapid.SampledFrom([]int64{0, 0, 0, 1, 63, 64, 5000, 1 << 33}).Draw(t, "gap")
					if !tr.Deliver(at) {
						t.Fatalf("offset %d refused, next is %d", at, tr.Next)
					}
					model.pending, model.next = append(model.pending, at), at+1
				}
			},
			"deliver a range": func(t *rapid.T) {
				first := model.next + rapid.Int64Range(0, 100).Draw(t, "gap")
				last := first + rapid.Int64Range(0, 10_000).Draw(t, "n")
				tr.DeliverRange(first, last)
				for at := first; at <= last; at++ {
					model.pending = append(model.pending, at)
				}
				model.next = last + 1
			},
			"deliver again": func(t *rapid.T) {
				at := model.next - rapid.Int64Range(1, 100).Draw(t, "back")
				if tr.Deliver(at) {
					t.Fatalf("offset %d taken twice", at)
				}
			},
			"skip": func(t *rapid.T) {
				model.next += rapid.Int64Range(0, 9000).Draw(t, "skip")
				tr.Skip(model.next)
			},
			"finish one": func(t *rapid.T) {
				if len(model.pending) == 0 {
					return
				}
				i := rapid.IntRange(0, len(model.pending)-1).Draw(t, "which")
				tr.Finish(model.pending[i])
				model.pending = slices.Delete(model.pending, i, i+1)
			},
			"finish a range": func(t *rapid.T) {
				first := model.floor() + rapid.Int64Range(-5, 5000).Draw(t, "first")
				last := first + rapid.Int64Range(0, 9000).Draw(t, "n")
				got, want := tr.FinishRange(first, last), len(model.pending)
				model.pending = slices.DeleteFunc(model.pending, func(at int64) bool { return first <= at && at <= last })
				if want -= len(model.pending); got != want {
					t.Fatalf("finishRange(%d, %d) = %d, want %d", first, last, got, want)
				}
			},
			"": func(t *rapid.T) {
				if got, want := tr.Floor(), model.floor(); got != want {
					t.Fatalf("floor = %d, want %d", got, want)
				}
				if got, want := tr.Pending, len(model.pending); got != want {
					t.Fatalf("pending = %d, want %d", got, want)
				}
			},
		})
	})
}

func TestTracker_SteadyStreamKeepsNoMemory(t *testing.T) {
	tr := New(0, -1)
	allocs := testing.AllocsPerRun(1000, func() {
		first := tr.Next
		tr.DeliverRange(first, first+2999)
		tr.FinishRange(first, first+2999)
	})
	if allocs > 0.1 || len(tr.chunks) > 1 {
		t.Fatalf("%v allocations a batch, %d chunks kept; want none", allocs, len(tr.chunks))
	}
}

func BenchmarkTracker_OutOfOrder(b *testing.B) {
	tr := New(0, -1)
	for i := 0; b.Loop(); i++ {
		first := tr.Next
		tr.DeliverRange(first, first+63)
		for at := first + 63; at >= first; at-- {
			tr.Finish(at)
		}
		_ = tr.Floor()
	}
}
