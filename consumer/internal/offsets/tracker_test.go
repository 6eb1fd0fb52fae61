package offsets

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naiveTracker is the obvious model: the unfinished offsets, in order, and the end of what was
// delivered.
type naiveTracker struct {
	next    int64
	pending []int64
	earlier map[int64]bool // finished by an earlier owner, not read yet

	committed int64 // the floor that was accepted last
	more      bool  // a record was finished since
}

// finishedAbove has the offsets above the floor that are finished.
func (n *naiveTracker) finishedAbove() (all []int64) {
	for at := n.floor(); at < n.next; at++ {
		if _, pending := slices.BinarySearch(n.pending, at); !pending {
			all = append(all, at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(n.earlier)) {
		if at >= n.next {
			all = append(all, at)
		}
	}
	return all
}

func (n *naiveTracker) floor() int64 {
	if len(n.pending) == 0 {
		return n.next
	}
	return n.pending[0]
}

// edge moves an offset to the first or the last one of its chunk, in half of the cases.
func edge(t *rapid.T, at int64) int64 {
	switch rapid.IntRange(0, 3).Draw(t, "edge") {
	case 0:
		return at &^ chunkMask
	case 1:
		return at | chunkMask
	}
	return at
}

func TestTracker_AgreesWithANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		tr := New(start, -1)
		model := naiveTracker{next: start, earlier: map[int64]bool{}, committed: -1}
		var earlier []Span
		for at := start + 1; len(earlier) < rapid.IntRange(0, 5).Draw(t, "earlier"); {
			s := Span{at, at + rapid.Int64Range(0, 90).Draw(t, "length")}
			for o := s.First; o <= s.Last; o++ {
				model.earlier[o] = true
			}
			earlier, at = append(earlier, s), s.Last+1+rapid.Int64Range(1, 90).Draw(t, "gap")
		}
		tr.Restore(earlier, 3)
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
			"read on": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					at, epoch := model.next, rapid.Int32Range(2, 4).Draw(t, "epoch")
					skipped := tr.FinishedBefore(at, epoch)
					if epoch > 3 {
						clear(model.earlier)
					}
					if want := model.earlier[at]; skipped != want {
						t.Fatalf("offset %d of epoch %d is skipped: %v, want %v", at, epoch, skipped, want)
					}
					if skipped {
						tr.Skip(at + 1)
					} else {
						tr.Deliver(at)
						model.pending = append(model.pending, at)
					}
					model.next = at + 1
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
				to := model.next + rapid.Int64Range(-100, 9000).Draw(t, "skip")
				tr.Skip(to)
				model.next = max(model.next, to)
			},
			"finish one": func(t *rapid.T) {
				if len(model.pending) == 0 {
					return
				}
				i := rapid.IntRange(0, len(model.pending)-1).Draw(t, "which")
				tr.Finish(model.pending[i])
				model.pending, model.more = slices.Delete(model.pending, i, i+1), true
			},
			"finish a range": func(t *rapid.T) {
				first := edge(t, model.floor()+rapid.Int64Range(-5, 5000).Draw(t, "first"))
				last := max(first, edge(t, first+rapid.Int64Range(0, 9000).Draw(t, "n")))
				got, want := tr.FinishRange(first, last), len(model.pending)
				model.pending = slices.DeleteFunc(model.pending, func(at int64) bool { return first <= at && at <= last })
				if want -= len(model.pending); got != want {
					t.Fatalf("finishRange(%d, %d) = %d, want %d", first, last, got, want)
				}
				model.more = model.more || want > 0
			},
			"commit": func(t *rapid.T) {
				c := tr.Commit()
				model.committed, model.more = model.floor(), false
				if n := len(model.pending); n > 0 && rapid.Bool().Draw(t, "finish the last one meanwhile") {
					tr.Finish(model.pending[n-1])
					model.pending, model.more = model.pending[:n-1], true
				}
				tr.Accepted(c)
			},
			"ask for one": func(t *rapid.T) {
				at := edge(t, model.next+rapid.Int64Range(-9000, 100).Draw(t, "at"))
				_, pending := slices.BinarySearch(model.pending, at)
				if got, want := tr.IsFinished(at), at < model.next && !pending; got != want {
					t.Fatalf("offset %d is finished: %v, want %v", at, got, want)
				}
			},
			"": func(t *rapid.T) {
				if got, want := tr.Floor(), model.floor(); got != want {
					t.Fatalf("floor = %d, want %d", got, want)
				}
				if got, want := tr.Pending, len(model.pending); got != want {
					t.Fatalf("pending = %d, want %d", got, want)
				}
				if got, want := tr.Dirty(), model.more || model.floor() > model.committed; got != want {
					t.Fatalf("a commit is needed: %v, want %v", got, want)
				}
				if tr.Next-tr.Floor() > 1<<20 {
					return // a model of single offsets takes too long
				}
				var got []int64
				for i, s := range tr.FinishedAbove() {
					if s.First > s.Last || i > 0 && s.First <= got[len(got)-1]+1 {
						t.Fatalf("span %v after %d", s, got[len(got)-1])
					}
					for at := s.First; at <= s.Last; at++ {
						got = append(got, at)
					}
				}
				if want := model.finishedAbove(); !slices.Equal(got, want) {
					t.Fatalf("finished above the floor: got %v, want %v", got, want)
				}
			},
		})
	})
}

// Behind a record of a later leader there are no older ones: what an earlier owner finished there
// is lost. The next commit, which has the later epoch, must not say that it is finished. Its reader
// would take it for the new records at these offsets, and never run them.
func TestTracker_ALaterLeaderVoidsWhatWasFinishedBefore(t *testing.T) {
	t.Parallel()
	tr := New(8, 8)
	tr.Restore([]Span{{10, 20}}, 3)
	if tr.FinishedBefore(8, 5) || !tr.Deliver(8) {
		t.Fatal("the new record at offset 8 does not run")
	}
	if got := tr.Commit().Finished; len(got) > 0 {
		t.Errorf("the next commit says that %v are finished, which are other records now", got)
	}
}

// Records of old formats have no leader epoch either: they would be taken for those of a commit
// without one, and skipped.
func TestTracker_WithoutAnEpochNothingWasFinishedBefore(t *testing.T) {
	t.Parallel()
	tr := New(8, 8)
	tr.Restore([]Span{{10, 20}}, -1)
	if tr.Restored() || tr.FinishedBefore(10, -1) {
		t.Error("a commit without an epoch has a record skipped")
	}
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
