package cases

import (
	"maps"
	"slices"
	"testing"
)

// All combinations run without the race detector, and each value at least once with it.
func TestCross_HasEachValue(t *testing.T) {
	t.Parallel()
	as, bs := map[string]int{"one": 1, "two": 2, "three": 3}, map[string]bool{"yes": true, "no": false}
	got := Cross(as, bs)
	if want := map[bool]int{true: 3, false: 6}[Few]; len(got) != want {
		t.Errorf("%d cases, want %d: %v", len(got), want, slices.Sorted(maps.Keys(got)))
	}
	seenA, seenB := map[int]bool{}, map[bool]bool{}
	for _, c := range got {
		seenA[c.A], seenB[c.B] = true, true
	}
	if len(seenA) != 3 || len(seenB) != 2 {
		t.Errorf("%d of 3 and %d of 2 values occur", len(seenA), len(seenB))
	}
	if empty := Cross(as, map[string]bool{}); len(empty) != 0 {
		t.Errorf("%d cases with a table that has none", len(empty))
	}
}

func TestSome_HasWhatIsNamed(t *testing.T) {
	t.Parallel()
	got := slices.Sorted(maps.Keys(Some(map[string]int{"a": 1, "b": 2}, "b")))
	if want := map[bool][]string{true: {"b"}, false: {"a", "b"}}[Few]; !slices.Equal(got, want) {
		t.Errorf("cases %v, want %v", got, want)
	}
}

func TestSeeds_AreSetByVariables(t *testing.T) {
	most := map[bool]int{true: 2, false: 16}[Few]
	for _, tt := range []struct {
		seeds, seed string
		want        int
		last        uint64
	}{
		{want: most, last: uint64(most) - 1},
		{seeds: "40", want: 40, last: 39},
		{seeds: "40", seed: "1007", want: 1, last: 1007},
	} {
		t.Setenv("SIDING_SEEDS", tt.seeds)
		t.Setenv("SIDING_SEED", tt.seed)
		if got := Seeds(16); len(got) != tt.want || got[len(got)-1] != tt.last {
			t.Errorf("SIDING_SEEDS=%s SIDING_SEED=%s: seeds %d, want %d up to %d", tt.seeds, tt.seed, got, tt.want, tt.last)
		}
	}
	t.Setenv("SIDING_SEED", "x")
	defer func() {
		if recover() == nil {
			t.Error("a seed that is no number was taken")
		}
	}()
	Seeds(16)
}
