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
	epochs letterEpochs
	discardReports
}

// partitionStates are the states of a topic's letters by partition.
type partitionStates map[int32]*stateSets

func (p partitionStates) of(partition int32) *stateSets {
	f := p[partition]
	if f == nil {
		f = &stateSets{discardReports: discardReports{byRun{}, byRun{}}}
		p[partition] = f
	}
	return f
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

// drop removes a letter, and which run redrove it.
func (f *stateSets) drop(offset int64) {
	f.set(offset, none)
	for run := range f.redriven {
		f.redriven.remove(run, offset)
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

// addReport adds a consumer's discard report. A report without an entry, revoked or broken, removes
// the report before it, which compaction deletes.
func (f *stateSets) addReport(run string, offset int64, hasEntry bool) {
	if hasEntry {
		if len(f.reported) < maxDiscardReports || f.reported[run] != nil {
			f.reported.add(run, offset)
		}
		return
	}
	f.reported.remove(run, offset)
	if f.redriven.has(run, offset) && f.sets[stateCode(Discarded)].Has(offset) {
		f.set(offset, stateCode(Redriven))
	}
}

// confirmReports marks the letters as discarded that a report and the entry's run agree about.
func (f *stateSets) confirmReports() {
	for run, reported := range f.reported {
		for offset := range reported.All() {
			if f.redriven.has(run, offset) {
				f.set(offset, stateCode(Discarded))
			}
		}
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
