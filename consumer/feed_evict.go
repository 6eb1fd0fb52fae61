package consumer

import (
	"cmp"
	"slices"
)

// evict has the records that are due last give up their bytes: as many as it takes, of those due at cutoff or later, but not the feed's
// next one, which would be fetched again at once. The caller holds the lock.
func (f *feed) evict(cutoff, want int64) (freed int64) {
	if f.lane.state >= laneDraining || f.retired.Load() || !slices.ContainsFunc(f.parked, func(p packedRecord) bool { return p.due >= cutoff }) {
		return 0
	}
	f.sortParked()
	n, least := len(f.parked), 0
	if f.dueCount() == 0 {
		least = 1
	}
	for n > least && freed < want && f.parked[n-1].due >= cutoff {
		n--
		p := &f.parked[n]
		f.evicted.add(p.offset, p.due, p.size())
		freed += p.size()
		*p = packedRecord{}
	}
	gone := len(f.parked) - n
	if gone == 0 {
		return 0 // nobody has more room by that
	}
	f.parked = f.parked[:n]
	f.release(gone, freed)
	f.lane.c.tierBudget.giveBack(freed)
	f.lane.c.tierBudget.evictedBytes.Add(freed)
	f.arm()
	return freed
}

// sortParked brings the heap in order; what is sorted is a heap too.
func (f *feed) sortParked() {
	slices.SortFunc(f.parked, func(a, b packedRecord) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.offset, b.offset)) })
}
