package main

import "testing"

// With a key that is more frequent, ten thousand handlers could not run at a time for long: those
// of a key run one after another.
func TestZipfOf_GivesNoKeyTooMuch(t *testing.T) {
	t.Parallel()
	s := shape{records: 1_000_000, keys: 1_000_000, zipf: true}
	counts := make([]int, s.keys)
	same := zipfOf(s)
	for i, zipf := 0, zipfOf(s); i < s.records; i++ {
		key := zipf.Uint64()
		if again := same.Uint64(); again != key {
			t.Fatalf("record %d has key %d, and then %d", i, key, again)
		}
		counts[key]++
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	if most*keysSlots > s.records || most < 30 {
		t.Errorf("the most frequent key has %d records of %d", most, s.records)
	}
	if zipfOf(shape{}) != nil {
		t.Error("keys that take turns are drawn")
	}
}
