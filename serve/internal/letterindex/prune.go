package letterindex

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// mostPrunes bounds the deletions of an index; beyond it the oldest are forgotten.
const mostPrunes = 500

// addPrune takes a record of the ledger over, if it is about a deletion or withdraws that. One that
// cannot be read is left out.
func addPrune(all ledgerrecord.Prunes, n *dlq.LedgerRecord) (changed bool) {
	changed, _ = all.Add(n.Run, n.Record.Value)
	if p, ok := all[strings.TrimPrefix(n.Run, ledgerrecord.PruneKey)]; ok {
		p.Until = nil // no caller needs it
		all[p.ID] = p
	}
	if len(all) > mostPrunes {
		delete(all, slices.Min(slices.Collect(maps.Keys(all)))) // ids sort by time
	}
	return changed
}

// Prunes returns what was deleted of the topic, by the clock and by people, the latest first: the
// last 500 deletions. Until is empty in each.
func (b *Index) Prunes() []ledgerrecord.Prune {
	b.mu.RLock()
	all := slices.Collect(maps.Values(b.prunes))
	b.mu.RUnlock()
	slices.SortFunc(all, func(a, b ledgerrecord.Prune) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(b.ID, a.ID)) })
	return all
}
