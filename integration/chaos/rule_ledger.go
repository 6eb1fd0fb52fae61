package chaos

// ledgerRule: the ledger knows of each letter that was redriven, and where its copy is.
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
			e, ok := s.entries[tp{from.Topic, from.Partition}][from.Offset]
			switch {
			case !ok:
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger has no entry about it", from)
			case e.Target.Topic != c.rec.Topic || e.Target.Partition != c.rec.Partition || e.Target.Offset != c.rec.Offset:
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger says: %s to %v", from, e.State, e.Target)
			}
		}
	}
}
