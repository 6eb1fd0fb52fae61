package tier

import (
	"slices"
	"time"
)

// evict evicts the records that are due last, until it freed want bytes. It evicts only records
// that are due at cutoff or later, and never the tier's next one, which would be fetched again at
// once. It returns the bytes that it freed.
//
// A block goes as a whole, because the fetch of what was evicted reads all of it. So evict also
// takes what is due up to a jitter earlier, but not within the reach, if its block has evicted
// records.
func (t *Tier) evict(cutoff, want int64) (freed int64) {
	if want <= 0 || t.lane.Closing() || t.retired.Load() ||
		!slices.ContainsFunc(t.parked, func(p packedRecord) bool { return p.due >= cutoff }) {
		return 0
	}
	t.parked.sort()
	n, least := len(t.parked), 0
	if t.dueCount() == 0 {
		least = 1
	}
	drop := func(p *packedRecord) {
		t.evicted.add(p.offset, p.due, p.size())
		freed += p.size()
	}
	var earliest int64
	for n > least && freed < want && t.parked[n-1].due >= cutoff {
		n--
		drop(&t.parked[n])
		earliest = t.parked[n].due
	}
	if n == len(t.parked) {
		return 0 // without a notice to the tiers that wait for room
	}
	earliest = max(earliest-t.cfg.jitter(), time.Now().UnixMilli()+t.cfg.reach()+1)
	kept := slices.DeleteFunc(t.parked[least:n], func(p packedRecord) bool {
		with := p.due >= earliest && t.evicted.has(p.offset)
		if with {
			drop(&p)
		}
		return with
	})
	clear(t.parked[n:])
	gone := len(t.parked) - least - len(kept)
	t.parked = t.parked[:least+len(kept)]
	t.forget(gone, freed)
	t.env.Budget.giveBack(freed)
	t.env.Budget.evictedBytes.Add(freed)
	t.arm()
	return freed
}
