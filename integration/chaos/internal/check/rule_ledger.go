package check

import (
	"slices"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// ledgerRule: the ledger knows of each letter that was redriven, and where its copy is. The outcome
// of a copy that failed on the way, as in a strain, may name a later one.
func ledgerRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		sent := map[string]bool{}
		for _, c := range s.redriven {
			f.counted["redriven"]++
			from := c.meta.Redrive.From
			if sent[from.String()] {
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven before", from)
			}
			sent[from.String()] = true
			e, ok := s.entries[trace.TP{Topic: from.Topic, Partition: from.Partition}][from.Offset]
			later := func(o *copied) bool {
				return e.State != dlq.Redriven && o.isAt(e.Target) && o.meta.Redrive.ID == c.meta.Redrive.ID && o.meta.Redrive.From == from
			}
			switch {
			case !ok:
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger has no entry about it", from)
			case !c.isAt(e.Target) && !slices.ContainsFunc(slices.Concat(c.of.copies, c.of.letters), later):
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger says: %s to %v", from, e.State, e.Target)
			}
		}
	}
}
