package tier

import (
	"maps"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/internal/cases"
)

// The index against a map: which offsets are evicted, in order, and that none is due before the
// index says so.
func TestEvictedIndex_AgreesWithANaiveModel(t *testing.T) {
	cases.Alone(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a evictedIndex
		model := map[int64]int64{} // due time by offset
		inGroup := rapid.OneOf(rapid.Int64Range(0, 3*evictedBits), rapid.Int64Range(1<<40, 1<<40+100), rapid.SampledFrom([]int64{evictedMask, evictedBits, 0, 63, 64}),
			// blocks of one record each
			rapid.Map(rapid.Int64Range(0, 1000), func(n int64) int64 { return n * evictedBits }))
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					offset, due := inGroup.Draw(t, "offset"), rapid.Int64Range(0, 1000).Draw(t, "due")
					if _, there := model[offset]; !there {
						model[offset] = due
						a.add(offset, due, 10)
					}
				}
			},
			"a block comes back, but for some": func(t *rapid.T) {
				b := a.first()
				if b == nil {
					t.Skip("nothing is evicted")
				}
				base, due := b.base, int64(math.MaxInt64)
				a.visit(base)
				for at, ok := a.next(base); ok && at < base+evictedBits; at, ok = a.next(at + 1) {
					if rapid.Bool().Draw(t, "stays") {
						due = min(due, model[at])
						a.seen.set(at, model[at], 10)
						continue
					}
					a.remove(at, 10)
					delete(model, at)
				}
				if rapid.Bool().Draw(t, "another one is evicted meanwhile") {
					at := base + rapid.Int64Range(0, evictedMask).Draw(t, "at")
					if _, there := model[at]; !there {
						model[at] = 7
						a.add(at, 7, 10)
						due = min(due, 7)
					}
				}
				a.leave(base, due, true)
				if b := blockAt(&a, base); b != nil && b.due != due {
					t.Fatalf("a block is due at %d after a pass, want %d exactly", b.due, due)
				}
			},
			"": func(t *rapid.T) {
				var got []int64
				for at, ok := a.next(0); ok; at, ok = a.next(at + 1) {
					got = append(got, at)
				}
				if want := slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
					t.Fatalf("evicted are %v, want %v", got, want)
				}
				if a.n != len(model) || a.bytes != int64(10*len(model)) {
					t.Fatalf("%d records of %d bytes, want %d of 10 bytes each", a.n, a.bytes, len(model))
				}
				least := int64(math.MaxInt64)
				for offset, due := range model {
					least = min(least, due)
					if b := blockAt(&a, offset&^evictedMask); b.due > due {
						t.Fatalf("offset %d is due at %d, its block not before %d", offset, due, b.due)
					}
				}
				if a.due() > least {
					t.Fatalf("due at %d, want no later than %d", a.due(), least)
				}
				if b := a.first(); (b == nil) != (len(model) == 0) || b != nil && b.due != a.due() {
					t.Fatalf("the first block is %+v, want the one that is due at %d", b, a.due())
				}
				var seen []int64 // of the block that a pass went over last
				for _, r := range a.sorted(a.seen.base) {
					if seen = append(seen, r.due); model[r.offset] != r.due || r.offset&^evictedMask != a.seen.base {
						t.Fatalf("offset %d is known to be due at %d, want %d", r.offset, r.due, model[r.offset])
					}
				}
				if b := blockAt(&a, a.seen.base); len(seen) > 0 && (len(seen) != b.n || !slices.IsSorted(seen) || seen[0] != b.due) {
					t.Fatalf("%d records are known, due at %v, of a block of %d that is due at %d", len(seen), seen, b.n, b.due)
				}
				if b := a.first(); b != nil {
					var run int64
					for at := b.base; ; at += evictedBits {
						n := 0
						for _, offset := range got {
							if offset&^evictedMask == at {
								n++
							}
						}
						if run += int64(10 * n); n == 0 {
							break
						}
					}
					if got := a.run(b.base, math.MaxInt64); got != run {
						t.Fatalf("%d bytes lie in one piece from %d on, want %d", got, b.base, run)
					}
				}
				for _, p := range a.pages {
					if len(p.blocks) == 0 || len(p.blocks) > evictedPageOf || slices.ContainsFunc(p.blocks, func(b evictedBlock) bool { return b.n == 0 }) {
						t.Fatalf("a page has %d blocks, or an empty one", len(p.blocks))
					}
				}
			},
		})
	})
}

// A million evicted records must not need the memory that evicting them saved.
func TestEvictedIndex_IsSmall(t *testing.T) {
	cases.Alone(t)
	t.Parallel()
	var a evictedIndex
	for offset := range int64(1_000_000) {
		a.add(offset, offset, 1000)
	}
	if size := len(a.pages) * evictedPageOf * 96; size > 250_000 {
		t.Errorf("%d bytes for a million records, want one bit and a little each", size)
	}
}

// blockAt is the block that begins there, nil where there is none.
func blockAt(a *evictedIndex, base int64) *evictedBlock {
	for b := range a.from(base) {
		if b.base == base {
			return b
		}
		break
	}
	return nil
}

// Ten million records wait in the eight partitions of a topic, in a group with memory for few of
// them. Neither the index nor the tracker, by which the tier's floor is committed, may need the
// memory that their eviction saved. That they are read in order, and most are evicted at once, is
// what a group finds after an outage. This simulates both, without the records.
//
// It is not parallel, since it looks at the heap.
func TestEvictedIndex_TenMillionRecordsTakeFewBytes(t *testing.T) {
	cases.Alone(t)
	const (
		partitions, records = 8, 10_000_000
		limit               = 4 << 20
	)
	heap := func() int64 {
		var mem runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&mem)
		return int64(mem.HeapAlloc)
	}
	before := heap()
	var (
		index   [partitions]evictedIndex
		tracker [partitions]offsets.Tracker
	)
	for p := range partitions {
		tracker[p] = offsets.New(0, 0)
		for at := range int64(records / partitions) {
			tracker[p].Deliver(at)
			index[p].add(at, at*7919%360_000, 500)
		}
	}
	if used := heap() - before; used > limit {
		t.Errorf("%d evicted records take %d bytes, want %d at most", records, used, limit)
	} else {
		t.Logf("%d evicted records take %d bytes", records, used)
	}
	for p := range partitions {
		if index[p].n != records/partitions || tracker[p].IsFinished(0) {
			t.Errorf("partition %d has %d records", p, index[p].n)
		}
	}
}
