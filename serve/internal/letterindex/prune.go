package letterindex

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
)

// mostPrunes bounds the deletions of an index; beyond it the oldest are forgotten.
const mostPrunes = 500

// prunes are the deletions that one ledger has, by id.
type prunes map[string]dlq.PruneRecord

// add takes a record of the ledger over, if it is about a deletion or withdraws that. A later
// record of the same deletion says how it ended. One that cannot be read is left out.
func (all prunes) add(n *dlq.LedgerRecord) (changed bool) {
	if n.Record.Value == nil {
		before := len(all)
		delete(all, n.Run[strings.IndexByte(n.Run, '/')+1:])
		return len(all) != before
	}
	p, err := dlq.ParsePruneRecord(n)
	if p == nil || err != nil {
		return false
	}
	p.Until = nil // no caller needs it
	all[p.ID] = *p
	if len(all) > mostPrunes {
		delete(all, slices.Min(slices.Collect(maps.Keys(all)))) // ids sort by time
	}
	return true
}

// Prunes returns what was deleted of the topic, by the clock and by people, the latest first: the
// last 500 deletions. Until is empty in each.
func (b *Index) Prunes() []dlq.PruneRecord {
	b.mu.RLock()
	all := slices.Collect(maps.Values(b.prunes))
	b.mu.RUnlock()
	slices.SortFunc(all, func(a, b dlq.PruneRecord) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.ID, a.ID)) })
	return all
}
