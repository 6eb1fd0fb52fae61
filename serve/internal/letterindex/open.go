package letterindex

import (
	"iter"

	"github.com/sidingkafka/siding/dlq"
)

// Open yields where the open letters are that a filter selects, those of a partition in order. The
// filter must have no Keys, Headers and Match. The index is locked meanwhile.
func Open(b *Index, f *dlq.Filter) iter.Seq2[int32, int64] {
	return func(yield func(int32, int64) bool) {
		b.mu.RLock()
		defer b.mu.RUnlock()
		selected := b.selects(f)
		isOpen := func(state uint8) bool { return !states[state].Resolves() }
		for id, p := range b.partitions {
			for _, c := range p.chunks {
				if !c.mayHave(selected, isOpen) {
					continue
				}
				for i := range c.packed {
					if r := c.row(i); isOpen(r.state) && selected.has(id, &r) && !yield(id, r.offset) {
						return
					}
				}
			}
		}
	}
}
