package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// judge says what became of letters that are shown to it in the order of their partitions.
type judge struct {
	ledger  *Ledger
	deduper *deduper
	glance  headerView // at the letter that was shown last
	copy    copied     // of what it is the copy, where no entry settles it
	names   bool       // it says of which letter a copy is
	behind  uint32     // how far behind that letter the copy is, if the judge names it; 0 from 2³² on
}

// newJudge returns a judge; one that names also says of which letter a copy is.
func newJudge(l *Ledger, names bool) *judge {
	return &judge{ledger: l, deduper: newDeduper(), names: names}
}

func (j *judge) state(r *kgo.Record) State {
	state := j.ledger.State(r.Partition, r.Offset)
	if !state.Resolves() {
		if j.unresolved(r, r.Timestamp) != noCopy {
			return Duplicate
		}
		return state
	}
	j.copy = noCopy
	j.glance.read(r.Headers)
	if state.resolves() {
		if l := j.deduper.of(r.Partition, &j.glance); l != nil {
			latest := l.resolve(&j.glance, j.ledger.since(r.Partition, r.Offset))
			if j.names {
				l.resolved.place(&j.glance, r.Offset, latest)
			}
		}
	}
	return state
}

// unresolved takes a letter that no entry settles, and says of what it is the copy. written is when
// the broker has it from.
func (j *judge) unresolved(r *kgo.Record, written time.Time) copied {
	j.copy, j.behind = noCopy, 0
	j.glance.read(r.Headers)
	l := j.deduper.of(r.Partition, &j.glance)
	if l == nil {
		return noCopy
	}
	j.copy = l.add(&j.glance, written)
	if j.names {
		j.behind = l.name(j.copy, &j.glance, r.Offset)
	}
	return j.copy
}
