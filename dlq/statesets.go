package dlq

import (
	"slices"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// stateSets has the states of the letters of one partition. It takes at most two bytes a letter. A
// letter takes six bytes more if it was resolved at another second than its neighbors, or is at
// another distance from its original letter. See DESIGN.md, "The ledger".
type stateSets struct {
	sets  [2 + len(states)]offsetset.Set // an offset is in at most one
	since offsetset.Numbers              // Unix seconds at which the letters were resolved
	// behind is how far a copy is after its letter; 0 if its entry does not name the letter.
	behind offsetset.Numbers
	epochs offsetset.Numbers // see Entry.Epochs
	// last is the greatest offset of an entry, by its number of epochs, and ends where the letters
	// of these epochs end in the brokers' log, as far as that is known.
	last, ends map[int32]int64
	discardReports
}

// The first two sets have the letters whose last entry cannot be read. The sets of the states
// follow.
const (
	stateBroken = iota
	stateNewer
	stateOf
)

// none removes a letter from all sets.
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

// resolve stores an entry's state, and since when its letter is resolved. The outcome of a redriven
// letter does not move that time.
func (f *stateSets) resolve(offset int64, s State, since uint32) {
	if s.resolves() {
		if f.reportedAt(offset).resolves() {
			since = min(since, f.since.Of(offset))
		}
		f.since.Set(offset, since)
	}
	f.set(offset, stateCode(s))
}

// addRedriven stores which run redrove a letter, if its last entry says so.
func (f *stateSets) addRedriven(offset int64, e *Entry) {
	if e.State == Redriven && f.redriven.has(e.Run, offset) {
		return
	}
	// The letter is redriven by its former entry, or discarded by a report that was confirmed.
	if f.sets[stateCode(Redriven)].Has(offset) || f.sets[stateCode(Discarded)].Has(offset) {
		for run := range f.redriven {
			f.redriven.remove(run, offset)
		}
	}
	if e.State == Redriven && e.Run != "" {
		f.redriven.add(e.Run, offset)
	}
}

// duplicate stores the entry of a copy, and how far it is after its letter; 0 if the entry does not
// name the letter.
func (f *stateSets) duplicate(offset int64, behind uint32) {
	f.behind.Set(offset, behind)
	f.set(offset, stateCode(Duplicate))
}

// state returns the state of a letter; empty without a readable entry. A copy is resolved only
// while its letter was redriven or discarded: the letter may have expired, or its run may have
// ended before it was redriven. A copy of an unknown letter is unknown.
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

// letterOf returns the letter that a copy's entry names. For any other letter it returns its own
// offset.
func (f *stateSets) letterOf(offset int64) int64 {
	if f.reportedAt(offset) != Duplicate {
		return offset
	}
	return offset - int64(f.behind.Of(offset))
}

// reportedAt returns the state in a letter's entry.
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

// stateCode returns the index of a state's set.
func stateCode(s State) int {
	if s == "" {
		return none
	}
	return stateOf + slices.Index(states[:], s)
}
