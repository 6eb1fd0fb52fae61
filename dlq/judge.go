package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// judge finds the state of letters that it gets in the order of their partitions.
type judge struct {
	ledger  *Ledger
	deduper *deduper
	view    headerView // of the last letter
	copy    copied     // of what it is the copy, where no entry resolves it
	names   bool       // it says of which letter a copy is
	// how far behind that letter the copy is, if the judge names it; 0 from 2³² on
	behind uint32
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
	j.view.read(r.Headers)
	if state.resolves() {
		if l := j.deduper.of(r.Partition, &j.view); l != nil {
			latest := l.resolve(&j.view, j.ledger.since(r.Partition, r.Offset))
			if j.names {
				l.resolved.place(&j.view, r.Offset, latest)
			}
		}
	}
	return state
}

// unresolved takes a letter that no entry resolves, and returns of what it is the copy. written is
// when the broker got it.
func (j *judge) unresolved(r *kgo.Record, written time.Time) copied {
	j.copy, j.behind = noCopy, 0
	j.view.read(r.Headers)
	l := j.deduper.of(r.Partition, &j.view)
	if l == nil {
		return noCopy
	}
	j.copy = l.add(&j.view, written)
	if j.names {
		j.behind = l.name(j.copy, &j.view, r.Offset)
	}
	return j.copy
}
