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

// Of three tables each value meets each value of the two others, in half of the combinations or
// less.
func TestCross_OfThreeHasEachPair(t *testing.T) {
	t.Parallel()
	table := func(names ...string) map[string]string {
		all := map[string]string{}
		for _, name := range names {
			all[name] = name
		}
		return all
	}
	as, bs, cs := table("a", "b", "c"), table("k", "l", "m"), table("u", "v", "w", "x")
	for name, got := range map[string]int{
		"the first is combined":  met(Cross(Cross(as, bs), cs)),
		"the second is combined": met(Cross(cs, Cross(as, bs))),
	} {
		if want := 3*3 + 3*4 + 3*4; !Few && got != want {
			t.Errorf("%s: %d pairs of values meet, want %d", name, got, want)
		}
	}
	got := len(Cross(Cross(as, bs), cs))
	if most := map[bool]int{false: 18, true: 36}[Full]; got > most || Full && got < most {
		t.Errorf("%d combinations, want %d at most, or all", got, most)
	}
}

// met counts the pairs of values that occur in combinations of one-letter values.
func met[C any](table map[string]C) int {
	pairs := map[string]bool{}
	for name := range table {
		a, b, c := name[0:1], name[2:3], name[4:5]
		pairs[a+b], pairs[a+c], pairs[b+c] = true, true, true
	}
	return len(pairs)
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
