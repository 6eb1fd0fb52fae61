package dlq

import (
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Scope says which of the letters that a filter selects [Ledger.Letters] yields.
type Scope uint8

const (
	// OpenOnly yields the letters that are open: no resolved ones, and no duplicates.
	OpenOnly Scope = iota
	// WithResolved yields every letter, resolved ones and duplicates too.
	WithResolved
	// WithCopies is for a caller that resolves what it reads. It yields the open
	// letters, and their copies behind them: these have the state [Duplicate] and
	// [Letter.CopyOf], and the filter is not asked about them. Copies of letters that
	// are resolved already come too. A copy about which the ledger has no entry becomes
	// open when its letter expires, so the caller writes an entry about it as well.
	//
	// A letter that Filter.Match does not take keeps its copies back: they are all that is
	// left once it has expired. To find all copies, each partition that the filter names
	// is read from its beginning, up to where the cursor ends.
	WithCopies
)

// selector picks the letters of a scope out of those that a read passes.
type selector struct {
	filter *Filter
	scope  Scope
	judge  *judge
	chosen *deduper        // with the letters that were yielded as the open ones; of WithCopies
	begin  map[int32]int64 // letters before it only tell which of those that follow are copies
}

func newSelector(f *Filter, l *Ledger, scope Scope) *selector {
	return &selector{filter: f, scope: scope, judge: newJudge(l, scope == WithCopies), chosen: newDeduper(), begin: map[int32]int64{}}
}

// narrow leaves what the filter's ranges name, and what is read before that to know copies. Copies
// that are yielded may be anywhere behind their letter, so their partitions are read whole.
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

// offer returns the letter if it is of the scope.
func (c *selector) offer(r *kgo.Record) *Letter {
	state := c.judge.state(r)
	switch {
	case c.scope == WithCopies && c.judge.copy != noCopy:
		return c.copied(r)
	case r.Offset < c.begin[r.Partition], c.scope != WithResolved && state.Resolves():
		return nil
	}
	letter := newLetter(r)
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

// copied returns a copy whose letter was yielded, or is resolved.
func (c *selector) copied(r *kgo.Record) *Letter {
	if c.judge.copy == copyOfOpen {
		if l := c.chosen.of(r.Partition, &c.judge.view); l == nil || !l.open.Has(c.judge.view.offset) {
			return nil
		}
	}
	if c.judge.behind == 0 {
		return nil
	}
	letter := newLetter(r)
	letter.State, letter.CopyOf = Duplicate, r.Offset-int64(c.judge.behind)
	return letter
}
