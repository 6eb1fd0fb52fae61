package letterindex

import (
	"slices"

	"github.com/sidingkafka/siding/dlq"
)

// tally sums up rows that differ in their offsets and times only.
type tally struct {
	kind            uint32
	state           uint8
	copied          bool
	n               int64
	failed, entered span
}

// span is the first and the last of some times, in Unix milliseconds.
type span struct{ first, last int64 }

// tallyOf returns the tally of one row.
func tallyOf(r *row) tally {
	return tally{kind: r.kind, state: r.state, copied: r.copied, n: 1, failed: span{r.failed, r.failed}, entered: span{r.entered, r.entered}}
}

// add adds a tally of the same sort.
func (t *tally) add(o *tally) {
	t.n += o.n
	t.failed = span{min(t.failed.first, o.failed.first), max(t.failed.last, o.failed.last)}
	t.entered = span{min(t.entered.first, o.entered.first), max(t.entered.last, o.entered.last)}
}

// mostTallies bounds the tallies of a chunk. With more it has none: they would take more memory
// than its rows.
const mostTallies = chunkRows / 16

// count adds a row to the tallies of the chunk.
func (c *rowChunk) count(r *row) {
	if c.various {
		return
	}
	one := tallyOf(r)
	for i := range c.tallies {
		if t := &c.tallies[i]; t.kind == one.kind && t.state == one.state && t.copied == one.copied {
			t.add(&one)
			return
		}
	}
	if len(c.tallies) == mostTallies {
		c.tallies, c.various = nil, true
		return
	}
	c.tallies = append(c.tallies, one)
}

// recount makes the tallies of the chunk anew.
func (c *rowChunk) recount() {
	c.tallies, c.various = c.tallies[:0], false
	for i := range c.packed {
		r := c.row(i)
		c.count(&r)
	}
}

// extent says how many of some rows are meant.
type extent uint8

const (
	noneOf extent = iota
	someOf
	allOf
)

// within says how much of a span is within bounds.
func (b bounds) within(s span) extent {
	switch first, last := b.has(s.first), b.has(s.last); {
	case first && last:
		return allOf
	case first || last || b.since != 0 && b.until != 0 && s.first < b.since && s.last >= b.until:
		return someOf
	}
	return noneOf
}

// selection is what a filter selects. The caller of its methods holds the index's lock.
type selection struct {
	kinds           []bool // by number
	states          []bool // by number
	failed, entered bounds
	ranges          []dlq.Range
}

// has reports whether a row is selected.
func (s *selection) has(partition int32, r *row) bool {
	return s.kinds[r.kind] && s.states[r.state] && s.failed.has(r.failed) && s.entered.has(r.entered) && s.inRange(partition, r.offset)
}

func (s *selection) inRange(partition int32, offset int64) bool {
	for _, is := range s.ranges {
		if is.Partition == partition && is.From <= offset && (offset < is.Until || is.Until == 0) {
			return true
		}
	}
	return len(s.ranges) == 0
}

// extent says how much of a tally is selected.
func (s *selection) extent(t *tally) extent {
	switch {
	case !s.kinds[t.kind] || !s.states[t.state]:
		return noneOf
	case len(s.ranges) > 0:
		return someOf
	}
	return min(s.failed.within(t.failed), s.entered.within(t.entered))
}

// visit calls do with tallies of all selected rows of the index. None of them is one that splits,
// if that is not nil: rows of such a one come by themselves. The caller holds the lock.
func (b *Index) visit(s *selection, splits func(*tally) bool, do func(*tally)) {
	for id, p := range b.partitions {
		for _, c := range p.chunks {
			if c.isWhole(s, splits) {
				for i := range c.tallies {
					if t := &c.tallies[i]; s.extent(t) == allOf {
						do(t)
					}
				}
				continue
			}
			for i := range c.packed {
				if r := c.row(i); s.has(id, &r) {
					t := tallyOf(&r)
					do(&t)
				}
			}
		}
	}
}

// isWhole reports whether the tallies of the chunk are enough for visit.
func (c *rowChunk) isWhole(s *selection, splits func(*tally) bool) bool {
	if c.various {
		return false
	}
	for i := range c.tallies {
		t := &c.tallies[i]
		if is := s.extent(t); is == someOf || is == allOf && splits != nil && splits(t) {
			return false
		}
	}
	return true
}

// mayHave reports whether selected rows whose state fits may be in the chunk.
func (c *rowChunk) mayHave(s *selection, fits func(state uint8) bool) bool {
	return c.various || slices.ContainsFunc(c.tallies, func(t tally) bool { return fits(t.state) && s.extent(&t) != noneOf })
}
