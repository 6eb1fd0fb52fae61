package isolate

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/offsets"
)

// Start is what a commit said, and where its reader goes on.
type Start struct {
	Evidence offsets.Evidence
	Process  uint64 // the reader
	Floor    int64  // of the commit
	End      int64  // of the log, -1 if it is unknown
	Epoch    int32  // leader epoch up to which the process had read that committed, -1 if unknown
}

// Suspects are the records of a window that may have killed earlier processes: those below Suspect
// that are not finished. nil has none.
type Suspects struct {
	offsets.Evidence
	Since time.Time // when this owner read of them

	isolated bool // they run in groups, or one by one, that a commit names
	logged   bool
	named    []offsets.Span // those that run together, in the next commit
	hand     []offsets.Span // those that may start, since a commit has named them
	// none is named before that time, since a commit did not name them
	postponed time.Time
	// leader epoch up to which the owner had read that named them, -1 if that is unknown
	epoch int32
}

// newSuspects returns those that a commit leaves, nil for none. No record beyond the log's end can
// have killed a process.
func newSuspects(limit int, at Start, now time.Time) *Suspects {
	said, floor := at.Evidence, at.Floor
	died := said.Process != 0 && said.Process != at.Process
	s := &Suspects{Since: now, epoch: at.Epoch, Evidence: offsets.Evidence{Deaths: said.Deaths, Suspect: said.Suspect, Singly: said.Singly, Condemned: said.Condemned}}
	if died && said.Until > floor {
		s.Deaths++
		s.Suspect = max(s.Suspect, said.Until)
	}
	if died && said.Alone != nil {
		s.Condemned = append(s.Condemned, *said.Alone)
	}
	// Retention may have deleted some, or an operator have passed over them.
	s.Singly = offsets.Above(s.Singly, floor)
	s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return a.Offset < floor })
	if at.End >= 0 {
		s.Suspect = min(s.Suspect, at.End)
	}
	if s.Suspect <= floor {
		return nil
	}
	s.isolated = s.Deaths >= limit-1 || len(s.Condemned)+len(s.Singly) > 0
	return s
}

// evidence is what a commit with that floor says of them.
func (s *Suspects) evidence(floor int64, over bool) offsets.Evidence {
	e := s.Evidence
	if over {
		e.Alone = nil
	} else {
		e.Singly = offsets.Union(e.Singly, s.named)
	}
	e.Singly = offsets.Above(e.Singly, floor)
	return e
}

// handEnd bounds what the next commit lets start, which a death is counted for.
func (s *Suspects) handEnd() (end int64) {
	if n := len(s.named); n > 0 {
		end = s.named[n-1].Last + 1
	}
	if s.Alone != nil {
		end = max(end, s.Alone.Offset+1)
	}
	return end
}

// IsIsolated reports whether they run in groups or one by one.
func (s *Suspects) IsIsolated() bool { return s != nil && s.isolated }

// Has reports whether the record at an offset starts only when a commit names it.
func (s *Suspects) Has(offset int64) bool { return s.IsIsolated() && offset < s.Suspect }

// Condemns returns what a commit said of a record that must not run; ok is false if it may.
func (s *Suspects) Condemns(offset int64) (a offsets.Alone, ok bool) {
	if s == nil {
		return a, false
	}
	i := slices.IndexFunc(s.Condemned, func(a offsets.Alone) bool { return a.Offset == offset })
	if i < 0 {
		return a, false
	}
	return s.Condemned[i], true
}

// Inherit returns what the window that replaces theirs in the same process knows of them. No
// process has died.
func (s *Suspects) Inherit(process uint64) (e offsets.Evidence) {
	if s != nil {
		e = s.Evidence
		e.Process, e.Singly = process, offsets.Union(e.Singly, s.named)
		e.RunSingly()
	}
	return e
}

// AreVoidedBy reports whether the owner that named them cannot have read a record of a leader
// epoch, as it was written later. A log that lost its end has other records at these offsets.
func (s *Suspects) AreVoidedBy(epoch int32) bool { return s != nil && s.epoch >= 0 && epoch > s.epoch }

// Read records that a record was read. If the owner that named the suspects cannot have read it,
// none is named from there on. They still count as suspects: that owner may have read on since its
// commit.
func (s *Suspects) Read(offset int64, epoch int32) {
	if !s.AreVoidedBy(epoch) {
		return
	}
	s.Condemned = slices.DeleteFunc(slices.Clone(s.Condemned), func(a offsets.Alone) bool { return a.Offset >= offset })
	s.Singly = offsets.Intersect(s.Singly, offsets.Span{Last: offset - 1})
	s.epoch = -1
}

// Name has the next commit say which suspects are to run together; none may start yet.
func (s *Suspects) Name(together []offsets.Span) { s.hand, s.named = nil, together }

// NameAlone has the next commit say that a suspect is to run alone; it may not start yet.
func (s *Suspects) NameAlone(a *offsets.Alone) { s.hand, s.Alone = nil, a }

// UnnameAlone has the next commit say that no record runs alone. Those of a group that were named
// beside it may still start.
func (s *Suspects) UnnameAlone(group []offsets.Span) { s.Alone, s.hand = nil, group }

// SetDecoding has the next commit say that the record which runs alone is being decoded, or is no
// more. It reports false if another record runs alone, or none.
func (s *Suspects) SetDecoding(offset int64, isDecoding bool) bool {
	if s.Alone == nil || s.Alone.Offset != offset {
		return false
	}
	s.Alone = &offsets.Alone{Offset: offset, Decoding: isDecoding}
	return true
}

// Hand lets suspects start that a commit has named.
func (s *Suspects) Hand(spans []offsets.Span) { s.hand = spans }

// mayStart reports whether a commit has named the suspect at an offset.
func (s *Suspects) mayStart(offset int64) bool { return s != nil && offsets.In(s.hand, offset) }

// Postpone has them wait until a time, as a commit did not name them.
func (s *Suspects) Postpone(until time.Time) { s.postponed = until }

// ArePostponed reports whether they wait, as a commit did not name them.
func (s *Suspects) ArePostponed(now time.Time) bool { return now.Before(s.postponed) }

// Logged reports whether it was called before.
func (s *Suspects) Logged() (before bool) {
	before, s.logged = s.logged, true
	return before
}
