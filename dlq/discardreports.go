package dlq

import (
	"strings"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// discardReports has two sets of letters by run: those that consumers report as discarded, and
// those that the run redrove and whose outcome is not known. A report counts if the letter is in
// both. Otherwise a record of another cluster, of a deleted topic, or of a forger could resolve a
// letter. Either record may be read first, since a consumer may be faster than the commit of the
// entry.
// See DESIGN.md, "Discard reports".
type discardReports struct {
	reported, redriven byRun
}

// byRun are letters by run and partition.
type byRun map[string]map[int32]*offsetset.Set

func (b byRun) add(run string, at place) {
	if b[run] == nil {
		b[strings.Clone(run)] = map[int32]*offsetset.Set{} // run is part of a record's memory
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

// maxDiscardReports bounds the runs whose reports are kept. No cluster has so many.
const maxDiscardReports = 1 << 16
