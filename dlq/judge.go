package dlq

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// judge finds the states of letters, which it gets in the order of their partitions.
type judge struct {
	ledger  *Ledger
	deduper *deduper
	view    headerView // of the last letter
	copy    copied     // of the last letter, if no entry resolves it
	names   bool       // whether it also finds the letter of a copy
	// behind is how far after its letter the last copy stands, if names is set; 0 if that is 2³² or
	// more.
	behind uint32
}

// newJudge returns a judge. With names it also finds the letters of copies.
func newJudge(l *Ledger, names bool) *judge {
	return &judge{ledger: l, deduper: newDeduper(), names: names}
}

func (j *judge) state(r *kgo.Record) State {
	state := j.ledger.State(r.Partition, r.Offset)
	if !state.Resolves() {
		if j.unresolved(r, r.Timestamp, state == Reopened) != noCopy {
			return Duplicate
		}
		return state
	}
	j.copy = noCopy
	j.view.read(r.Headers)
	if state.resolves() {
		if l := j.deduper.of(r.Partition, &j.view); l != nil {
			latest := l.resolve(&j.view, j.ledger.states[r.Partition].since.Of(r.Offset))
			if j.names {
				l.resolved.place(&j.view, r.Offset, latest)
			}
		}
	}
	return state
}

// unresolved judges a letter that no entry resolves: it returns the kind of letter that this one is
// a copy of. written is the timestamp of its record. A letter that was reopened is a copy of an
// open letter only: the operator has seen it, and wants it back.
func (j *judge) unresolved(r *kgo.Record, written time.Time, reopened bool) copied {
	j.copy, j.behind = noCopy, 0
	j.view.read(r.Headers)
	l := j.deduper.of(r.Partition, &j.view)
	if l == nil {
		return noCopy
	}
	j.copy = l.add(&j.view, written, reopened)
	if j.names {
		j.behind = l.name(j.copy, &j.view, r.Offset)
	}
	return j.copy
}
