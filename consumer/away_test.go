package consumer

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The index against a map: which offsets are away, in order, and that nothing is due before the index says so.
func TestTheIndexOfGivenUpRecordsAgreesWithANaiveModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var a awayIndex
		model := map[int64]int64{} // due time by offset
		offsets := rapid.OneOf(rapid.Int64Range(0, 3*awayBits), rapid.Int64Range(1<<40, 1<<40+100), rapid.SampledFrom([]int64{awayMask, awayBits, 0, 63, 64}))
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "n") {
					offset, due := offsets.Draw(t, "offset"), rapid.Int64Range(0, 1000).Draw(t, "due")
					if _, there := model[offset]; !there {
						model[offset] = due
						a.add(offset, due, 10)
					}
				}
			},
			"a block comes back, but for some": func(t *rapid.T) {
				b := a.first()
				if b == nil {
					t.Skip("nothing is away")
				}
				base, due := b.base, int64(math.MaxInt64)
				a.visit(base)
				for at, ok := a.next(base); ok && at < base+awayBits; at, ok = a.next(at + 1) {
					if rapid.Bool().Draw(t, "stays") {
						due = min(due, model[at])
						continue
					}
					a.remove(at, 10)
					delete(model, at)
				}
				if rapid.Bool().Draw(t, "another one gives up its bytes meanwhile") {
					at := base + rapid.Int64Range(0, awayMask).Draw(t, "at")
					if _, there := model[at]; !there {
						model[at] = 7
						a.add(at, 7, 10)
						due = min(due, 7)
					}
				}
				a.leave(base, due)
				if b := a.search(base); b < len(a.blocks) && a.blocks[b].base == base && a.blocks[b].due != due {
					t.Fatalf("a block is due at %d after a pass, want %d exactly", a.blocks[b].due, due)
				}
			},
			"": func(t *rapid.T) {
				var got []int64
				for at, ok := a.next(0); ok; at, ok = a.next(at + 1) {
					got = append(got, at)
				}
				if want := slices.Sorted(maps.Keys(model)); !slices.Equal(got, want) {
					t.Fatalf("away are %v, want %v", got, want)
				}
				if a.n != len(model) || a.bytes != int64(10*len(model)) {
					t.Fatalf("%d records of %d bytes, want %d of 10 bytes each", a.n, a.bytes, len(model))
				}
				least := int64(math.MaxInt64)
				for offset, due := range model {
					least = min(least, due)
					if b := a.blocks[a.search(offset&^awayMask)]; b.due > due {
						t.Fatalf("offset %d is due at %d, its block not before %d", offset, due, b.due)
					}
				}
				if a.due() > least {
					t.Fatalf("due at %d, want no later than %d", a.due(), least)
				}
			},
		})
	})
}

// A million parked records must not need what was saved by giving their bytes up.
func TestTheIndexOfGivenUpRecordsIsSmall(t *testing.T) {
	t.Parallel()
	var a awayIndex
	for offset := range int64(1_000_000) {
		a.add(offset, offset, 1000)
	}
	if size := len(a.blocks) * 96; size > 200_000 {
		t.Errorf("%d bytes for a million records, want one bit and a little each", size)
	}
}
