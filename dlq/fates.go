package dlq

import (
	"slices"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// fates are the states of the letters of one partition, two bytes a letter at most, and six more for each that was settled at another
// second than those beside it, or is the copy of a letter that is farther away than those beside it have theirs.
// See DESIGN.md, "The ledger".
type fates struct {
	sets   [2 + len(states)]offsetset.Set // an offset is in one, or in none
	since  offsetset.Numbers              // Unix seconds at which letters were settled that have such a state
	behind offsetset.Numbers              // how far behind its letter a copy stands; 0 where its entry does not name the letter
}

// The first two sets are of letters about which the last entry can't be read; then come those of the states.
const (
	fateBroken = iota
	fateNewer
	fateState
)

// none takes away what is said of a letter.
const none = -1

func (f *fates) set(offset int64, fate int) {
	for i := range f.sets {
		if i != fate && f.sets[i].Len() > 0 {
			f.sets[i].Remove(offset)
		}
	}
	if fate != none {
		f.sets[fate].Add(offset)
	}
}

// settle takes down an entry, and since when its letter is settled: an outcome does not change that.
func (f *fates) settle(offset int64, s State, since uint32) {
	if s.resolves() {
		if f.said(offset).resolves() {
			since = min(since, f.since.Of(offset))
		}
		f.since.Set(offset, since)
	}
	f.set(offset, fateOf(s))
}

// duplicate takes down the entry of a copy, which stands so far behind its letter; 0 where that is not named.
func (f *fates) duplicate(offset int64, behind uint32) {
	f.behind.Set(offset, behind)
	f.set(offset, fateOf(Duplicate))
}

// state is empty for a letter without an entry that can be read. A copy is settled only while its
// letter is resolved: the letter may have expired, or the run that was to bring it back may have
// ended before. That of an unknown one is unknown.
func (f *fates) state(offset int64) State {
	s := f.said(offset)
	if s == Duplicate {
		if letter := f.letterOf(offset); letter != offset {
			switch of := f.said(letter); {
			case of == Unknown:
				return Unknown
			case !of.resolves():
				return ""
			}
		}
	}
	return s
}

// letterOf is the letter of a copy whose entry names it, and any other letter itself.
func (f *fates) letterOf(offset int64) int64 {
	if f.said(offset) != Duplicate {
		return offset
	}
	return offset - int64(f.behind.Of(offset))
}

// said is what the entry of a letter says.
func (f *fates) said(offset int64) State {
	if f == nil {
		return ""
	}
	for i, s := range states {
		if set := &f.sets[fateState+i]; set.Len() > 0 && set.Has(offset) {
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
