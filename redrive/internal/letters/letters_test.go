package letters

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A set is what a map of places would be, and a clone does not follow its original.
func TestSet_AgreesWithAMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		set, want := Set{}, map[Place]bool{}
		for range 300 {
			at := At(draw.Int32N(3), draw.Int64N(40))
			switch had := want[at]; draw.IntN(3) {
			case 0, 1:
				if want[at] = true; set.Add(at) == had {
					t.Fatalf("seed %d: adding %v reports %t", seed, at, had)
				}
			default:
				if delete(want, at); set.Remove(at) != had {
					t.Fatalf("seed %d: removing %v reports %t", seed, at, !had)
				}
			}
			if set.Has(at) != want[at] || set.Len() != int64(len(want)) {
				t.Fatalf("seed %d: has %v %t, and %d letters; want %t and %d", seed, at, set.Has(at), set.Len(), want[at], len(want))
			}
		}
		clone := set.Clone()
		for at := range want {
			set.Remove(at)
		}
		got := map[Place]bool{}
		for at := range clone.All() {
			got[at] = true
		}
		if !maps.Equal(got, want) || set.Len() != 0 || len(slices.Collect(set.All())) != 0 {
			t.Fatalf("seed %d: the clone has %v, want %v; %d letters are left", seed, got, want, set.Len())
		}
	}
}
