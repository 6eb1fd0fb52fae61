package letterindex

import (
	"cmp"
	"slices"

	"github.com/sidingkafka/siding/dlq"
)

// Beside returns the letters that come just before and just after the one at a place, of those that
// a filter selects, in the order of [Index.Page]: the one before it was written later. Nil stands
// for none. The filter must have no Keys, Headers and Match. resolved says whether resolved letters
// and duplicates are among them.
func Beside(b *Index, f *dlq.Filter, resolved bool, partition int32, offset int64) (before, after *Row) {
	is, ok := b.At(partition, offset)
	if !ok {
		return nil, nil
	}
	at := candidate{partition, row{offset: offset, entered: is.EnteredAt.UnixMilli()}}
	b.mu.RLock()
	defer b.mu.RUnlock()
	selected := b.selects(f)
	listed := func(state uint8) bool { return resolved || !states[state].Resolves() }
	nearest := func(sign int) *Row {
		best, found := at, false
		for id, p := range b.partitions {
			for n := range p.chunks {
				if sign < 0 { // the best comes early
					n = len(p.chunks) - 1 - n
				}
				c := p.chunks[n]
				if !c.mayHave(selected, listed) || !c.reaches(sign, &at, &best, found) {
					continue
				}
				for i := range c.packed {
					one := candidate{id, c.row(i)}
					if one.compare(&at)*sign > 0 && (!found || one.compare(&best)*sign < 0) && listed(one.row.state) && selected.has(id, &one.row) {
						best, found = one, true
					}
				}
			}
		}
		if !found {
			return nil
		}
		r := b.row(best.partition, &best.row)
		return &r
	}
	return nearest(1), nearest(-1)
}

// candidate is a row of a partition.
type candidate struct {
	partition int32
	row       row
}

// compare orders letters by when they were written.
func (a *candidate) compare(b *candidate) int {
	return cmp.Or(cmp.Compare(a.row.entered, b.row.entered), cmp.Compare(b.partition, a.partition), cmp.Compare(a.row.offset, b.row.offset))
}

// reaches reports whether a row of the chunk may be beyond at, and not beyond best, if that was
// found: later ones if sign is 1, earlier ones if it is -1.
func (c *rowChunk) reaches(sign int, at, best *candidate, found bool) bool {
	if c.various {
		return true
	}
	first := slices.MinFunc(c.tallies, func(a, b tally) int { return cmp.Compare(a.entered.first, b.entered.first) }).entered.first
	last := slices.MaxFunc(c.tallies, func(a, b tally) int { return cmp.Compare(a.entered.last, b.entered.last) }).entered.last
	if sign > 0 {
		return last >= at.row.entered && (!found || first <= best.row.entered)
	}
	return first <= at.row.entered && (!found || last >= best.row.entered)
}
