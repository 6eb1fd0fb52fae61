package dlq

import (
	"slices"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// fates are the states of the letters of one partition, two bytes a letter at most. An offset is in one set, or in none.
type fates [2 + len(states)]offsetset.Set

// The first two sets are of letters about which the last entry can't be read; then come those of the states.
const (
	fateBroken = iota
	fateNewer
	fateState
)

// none takes away what is said of a letter.
const none = -1

func (f *fates) set(offset int64, fate int) {
	for i := range f {
		if i != fate && f[i].Len() > 0 {
			f[i].Remove(offset)
		}
	}
	if fate != none {
		f[fate].Add(offset)
	}
}

// state is empty for a letter without an entry that can be read.
func (f *fates) state(offset int64) State {
	if f == nil {
		return ""
	}
	for i, s := range states {
		if set := &f[fateState+i]; set.Len() > 0 && set.Has(offset) {
			return s
		}
	}
	return ""
}

// fateOf is the set of a state.
func fateOf(s State) int {
	if s == "" {
		return none
	}
	return fateState + slices.Index(states[:], s)
}
