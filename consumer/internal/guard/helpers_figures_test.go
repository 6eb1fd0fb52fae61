package guard

import (
	"cmp"
	"slices"
	"time"
)

// figures are what a cell is judged by.
type figures struct {
	records, healthy int           // that never failed
	wait             time.Duration // the longest of a healthy record, but for its own downtime
	late             int           // healthy records that waited for more than a minute
	cost             time.Duration // by which a healthy record was earlier without the machine
	failed, dead     int           // of the records whose downstream comes back
	calls            int           // in the trouble
	load             float64       // calls for each record that comes
	back             time.Duration // from the end of the trouble until no source is held
	inverted         int           // records that ran before one that never left its source
	unprobed         int           // of these, those that were no probes
	undone           int           // records whose downstream came back, and that have not ended
}

// measured returns the figures of a simulation, beside one of the same cell without a machine.
func measured(w, bare *world) (f figures) {
	f.load, f.calls, f.back = w.loads()
	f.records = len(w.records)
	f.inverted, f.unprobed = w.inversions()
	for i, r := range w.records {
		switch back := !w.cell.poison(r); {
		case !r.failed:
			f.healthy++
			f.waited(w, r, bare.records[i])
		case back && r.done == 0:
			f.failed++
			f.undone++
		case back:
			f.failed++
			if r.dead {
				f.dead++
			}
		}
	}
	return f
}

// waited counts how long a healthy record waited, and how long it did without a machine.
func (f *figures) waited(w *world, r, bare *record) {
	end := r.done
	if end == 0 {
		end = w.now
		f.undone++
	}
	wait := end - r.arrived - w.cell.downtime(r, r.arrived, end)
	f.wait = max(f.wait, wait)
	if wait > time.Minute {
		f.late++
	}
	if !bare.failed && bare.done > 0 {
		f.cost = max(f.cost, end-bare.done)
	}
}

// loads returns the load while there was trouble, and for how long a source was held after its end.
func (w *world) loads() (load float64, calls int, back time.Duration) {
	c := w.cell
	from, to := time.Duration(0), c.lasts
	for _, t := range c.troubles {
		if t.to > 0 {
			from, to = t.from, t.to
		}
	}
	offered := 0
	for s := range min(len(w.offered), len(w.calls), int(to/time.Second)) {
		at := time.Duration(s) * time.Second
		if at >= from && slices.ContainsFunc(c.troubles, func(t trouble) bool { return t.fails(at) }) {
			calls += w.calls[s]
			offered += w.offered[s]
		}
	}
	return float64(calls) / float64(max(offered, 1)), calls, max(w.heldTo-to, 0)
}

// inversions returns how many records ran before an earlier one that never left its source, and how
// many of them were no probes.
func (w *world) inversions() (all, unprobed int) {
	if w.cell.order == byNone {
		return 0, 0
	}
	first := map[int]int{} // the first record of those that ran later
	order := slices.Clone(w.records)
	slices.SortStableFunc(order, func(a, b *record) int { return cmp.Compare(a.done, b.done) })
	for _, r := range slices.Backward(order) {
		if r.done == 0 || r.dead {
			continue
		}
		of := r.key
		if w.cell.order == byPartition {
			of = r.lane.number
		}
		next, ok := first[of]
		if ok && next < r.id {
			if all++; !r.good {
				unprobed++
			}
		}
		if !r.copied && (!ok || r.id < next) {
			first[of] = r.id
		}
	}
	return all, unprobed
}

// poison reports whether a record fails for good.
func (c *cell) poison(r *record) bool {
	return slices.ContainsFunc(c.troubles, func(t trouble) bool { return t.to == 0 && t.scope != byChance && c.hits(&t, r, 0) })
}

// downtime returns for how long between two times each call of a record would have failed.
func (c *cell) downtime(r *record, from, to time.Duration) (sum time.Duration) {
	for i := range c.troubles {
		t := &c.troubles[i]
		if t.to == 0 || t.share < 1 && (t.scope == byChance || !c.hits(t, r, 0)) {
			continue
		}
		a, b := max(from, t.from), min(to, t.to)
		if a >= b {
			continue
		}
		if t.on == 0 {
			sum += b - a
			continue
		}
		sum += t.onUntil(b) - t.onUntil(a)
	}
	return sum
}

// onUntil returns for how long flaps were on until a time.
func (t *trouble) onUntil(at time.Duration) time.Duration {
	period, since := t.on+t.off, at-t.from
	periods := int(since / period)
	return time.Duration(periods)*t.on + min(since%period, t.on)
}
