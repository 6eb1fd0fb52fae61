package dlq

// Chooses letters by filter and scope.

import (
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Scope is the kind of letters that [Ledger.Letters] yields, of those that a filter selects.
type Scope uint8

const (
	// OpenOnly yields the open letters, without duplicates.
	OpenOnly Scope = iota
	// WithResolved yields all letters, also resolved ones and duplicates.
	WithResolved
	// WithCopies is for callers that resolve the letters they read. It yields the open letters that
	// the filter selects, and after each its copies, which the filter need not select. It also
	// yields copies of letters that are resolved already. A copy has the state [Duplicate] and
	// [Letter.CopyOf]. Without an entry of its own it becomes open when its letter expires, so the
	// caller writes one.
	//
	// Copies of an open letter that the filter does not select are not yielded: they are all that
	// is left of the record once that letter expires. To find all copies, each partition of the
	// filter is read from its beginning to the cursor's end.
	WithCopies
	// DiscardedOnly yields the letters that were discarded ([State.Discards]), and no copies.
	DiscardedOnly
	// PendingOnly yields the letters that were redriven and have no outcome ([Redriven]).
	PendingOnly
)

// has reports whether the scope has letters of a state.
func (s Scope) has(state State) bool {
	switch s {
	case WithResolved:
		return true
	case DiscardedOnly:
		return state.Discards()
	case PendingOnly:
		return state == Redriven
	}
	return !state.Resolves()
}

// selector selects the letters of a scope during a read.
type selector struct {
	filter *Filter
	scope  Scope
	judge  *judge
	chosen *deduper        // has the open letters that were yielded, for WithCopies
	begin  map[int32]int64 // earlier letters are only read to recognize their copies
}

func newSelector(f *Filter, l *Ledger, scope Scope) *selector {
	return &selector{filter: f, scope: scope, judge: newJudge(l, scope == WithCopies), chosen: newDeduper(), begin: map[int32]int64{}}
}

// narrow leaves the filter's ranges, and the offsets before them that are read to recognize copies.
// WithCopies reads whole partitions, because a copy may be anywhere after its letter.
func (c *selector) narrow(left map[int32]span) {
	all := maps.Clone(left)
	c.filter.narrow(left)
	for p, s := range left {
		c.begin[p] = s.at
		if c.scope == WithCopies {
			s = all[p]
			s.at = s.start
		} else {
			s = s.back()
		}
		left[p] = s
	}
}

// selected returns the letter if it is selected; nil otherwise.
func (c *selector) selected(r *kgo.Record) *Letter {
	state := c.judge.state(r)
	switch {
	case c.scope == WithCopies && c.judge.copy != noCopy:
		return c.copied(r)
	case r.Offset < c.begin[r.Partition] || !c.scope.has(state):
		return nil
	}
	letter := newLetter(r, c.judge.ledger.dialects)
	letter.State = state
	if !c.filter.Selects(letter) {
		return nil
	}
	if c.scope == WithCopies {
		if l := c.chosen.of(r.Partition, &c.judge.view); l != nil {
			l.open.Add(c.judge.view.offset)
		}
	}
	return letter
}

// copied returns a copy whose letter was yielded or is resolved; nil for any other copy.
func (c *selector) copied(r *kgo.Record) *Letter {
	if c.judge.copy == copyOfOpen {
		if l := c.chosen.of(r.Partition, &c.judge.view); l == nil || !l.open.Has(c.judge.view.offset) {
			return nil
		}
	}
	if c.judge.behind == 0 {
		return nil
	}
	letter := newLetter(r, c.judge.ledger.dialects)
	letter.State, letter.CopyOf = Duplicate, r.Offset-int64(c.judge.behind)
	return letter
}
