package dlq

// The reports of consumers about discarded letters, by run.

import (
	"strings"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// discardReports has two sets of letters of a partition by run: those that consumers report as
// discarded, and those that the run redrove and whose outcome is not known. A report counts if the
// letter is in both. Otherwise a record of another cluster, of a deleted topic, or of a forger
// could resolve a letter. Either record may be read first, since a consumer may be faster than the
// commit of the entry.
// See DESIGN.md, "Discard reports".
type discardReports struct {
	reported, redriven byRun
}

// byRun are letters by run.
type byRun map[string]*offsetset.Set

func (b byRun) add(run string, offset int64) {
	if b[run] == nil {
		b[strings.Clone(run)] = &offsetset.Set{} // run is part of a record's memory
	}
	b[run].Add(offset)
}

func (b byRun) remove(run string, offset int64) {
	if s := b[run]; s != nil {
		if s.Remove(offset); s.Len() == 0 {
			delete(b, run)
		}
	}
}

func (b byRun) has(run string, offset int64) bool {
	s := b[run]
	return s != nil && s.Has(offset)
}

// maxDiscardReports bounds the runs of a partition whose reports are kept. No cluster has so many.
const maxDiscardReports = 1 << 14
