package dlq

import (
	"strings"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// discardReports is what consumers say of letters that a run brought back, and which run brought a
// letter back of which no more is known. It is believed where the two are the same. Else a record
// of another cluster, or of a topic that was deleted since, or one that somebody made up, would
// take a letter off the open ones that it has nothing to do with. Which of the two is read first
// does not matter: a consumer may be faster than the commit of the entry.
// See DESIGN.md, "Discard reports".
type discardReports struct {
	reported, redriven byRun
}

// byRun are letters by run and partition.
type byRun map[string]map[int32]*offsetset.Set

func (b byRun) add(run string, at place) {
	if b[run] == nil {
		b[strings.Clone(run)] = map[int32]*offsetset.Set{} // it is part of a record
	}
	if b[run][at.partition] == nil {
		b[run][at.partition] = &offsetset.Set{}
	}
	b[run][at.partition].Add(at.offset)
}

func (b byRun) remove(run string, at place) {
	s := b[run][at.partition]
	if s == nil {
		return
	}
	if s.Remove(at.offset); s.Len() > 0 {
		return
	}
	if delete(b[run], at.partition); len(b[run]) == 0 {
		delete(b, run)
	}
}

func (b byRun) has(run string, at place) bool {
	s := b[run][at.partition]
	return s != nil && s.Has(at.offset)
}

// maxDiscardReports is of how many runs anything is kept that consumers say; nobody has so many.
const maxDiscardReports = 1 << 16
