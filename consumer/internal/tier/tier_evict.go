package tier

import "slices"

// evict evicts the records that are due last, until it freed want bytes. It evicts only records
// that are due at cutoff or later, and never the tier's next one, which would be fetched again at
// once. It returns the bytes that it freed.
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
	for n > least && freed < want && t.parked[n-1].due >= cutoff {
		n--
		p := &t.parked[n]
		t.evicted.add(p.offset, p.due, p.size())
		freed += p.size()
		*p = packedRecord{}
	}
	gone := len(t.parked) - n
	if gone == 0 {
		return 0 // without a notice to the tiers that wait for room
	}
	t.parked = t.parked[:n]
	t.forget(gone, freed)
	t.env.Budget.giveBack(freed)
	t.env.Budget.evictedBytes.Add(freed)
	t.arm()
	return freed
}
