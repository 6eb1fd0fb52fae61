package dlq

import (
	"slices"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// stateSets are the states of the letters of one partition, two bytes a letter at most, and six
// more for each that was settled at another second than those beside it, or is the copy of a letter
// that is farther away than those beside it have theirs. See DESIGN.md, "The ledger".
type stateSets struct {
	sets  [2 + len(states)]offsetset.Set // an offset is in one, or in none
	since offsetset.Numbers              // Unix seconds at which the letters were resolved
	// how far behind its letter a copy stands; 0 where its entry does not name the letter
	behind offsetset.Numbers
}

// The first two sets are of letters about which the last entry can't be read; then come those of
// the states.
const (
	stateBroken = iota
	stateNewer
	stateOf
)

// none takes away what is said of a letter.
const none = -1

func (f *stateSets) set(offset int64, fate int) {
	for i := range f.sets {
		if i != fate && f.sets[i].Len() > 0 {
			f.sets[i].Remove(offset)
		}
	}
	if fate != none {
		f.sets[fate].Add(offset)
	}
}

// resolve keeps an entry, and since when its letter is resolved: an outcome does not change
// that.
func (f *stateSets) resolve(offset int64, s State, since uint32) {
	if s.resolves() {
		if f.reportedAt(offset).resolves() {
			since = min(since, f.since.Of(offset))
		}
		f.since.Set(offset, since)
	}
	f.set(offset, stateCode(s))
}

// duplicate keeps the entry of a copy, which stands so far behind its letter; 0 where that is
// not named.
func (f *stateSets) duplicate(offset int64, behind uint32) {
	f.behind.Set(offset, behind)
	f.set(offset, stateCode(Duplicate))
}

// state is empty for a letter without an entry that can be read. A copy is resolved only while its
// letter is resolved: the letter may have expired, or the run that was to bring it back may have
// ended before. That of an unknown one is unknown.
func (f *stateSets) state(offset int64) State {
	s := f.reportedAt(offset)
	if s == Duplicate {
		if letter := f.letterOf(offset); letter != offset {
			switch of := f.reportedAt(letter); {
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
func (f *stateSets) letterOf(offset int64) int64 {
	if f.reportedAt(offset) != Duplicate {
		return offset
	}
	return offset - int64(f.behind.Of(offset))
}

// reportedAt is what the entry of a letter says.
func (f *stateSets) reportedAt(offset int64) State {
	if f == nil {
		return ""
	}
	for i, s := range states {
		if set := &f.sets[stateOf+i]; set.Len() > 0 && set.Has(offset) {
			return s
		}
	}
	return ""
}

// stateCode is the set of a state.
func stateCode(s State) int {
	if s == "" {
		return none
	}
	return stateOf + slices.Index(states[:], s)
}
