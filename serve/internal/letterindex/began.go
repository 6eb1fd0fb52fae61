package letterindex

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Release is a version of a service, and when a letter of it failed first.
type Release struct {
	Version string
	First   time.Time
}

// Releases returns the versions of the letters that a filter selects, resolved ones included, the
// first one to fail first. The filter must have no Keys, Headers and Match, and neither that of
// First.
func Releases(b *Index, f *dlq.Filter) (all []Release) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	first := map[string]int64{}
	b.visit(b.selects(f), nil, func(t *tally) {
		version := b.kinds.all[t.kind].Version
		if at, ok := first[version]; version != "" && !t.copied && (!ok || t.failed.first < at) {
			first[version] = t.failed.first
		}
	})
	for version, at := range first {
		all = append(all, Release{version, time.UnixMilli(at)})
	}
	slices.SortFunc(all, func(a, b Release) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Version, b.Version)) })
	return all
}

// First returns the letter that failed first, of those that a filter selects, resolved ones
// included; ok is false if there is none.
func First(b *Index, f *dlq.Filter) (first Row, ok bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	selected := b.selects(f)
	var at int64
	b.visit(selected, nil, func(t *tally) {
		if !t.copied && (!ok || t.failed.first < at) {
			at, ok = t.failed.first, true
		}
	})
	if !ok {
		return Row{}, false
	}
	for _, id := range slices.Sorted(maps.Keys(b.partitions)) {
		for _, c := range b.partitions[id].chunks {
			if !c.various && !slices.ContainsFunc(c.tallies, func(t tally) bool { return t.failed.first <= at && at <= t.failed.last }) {
				continue
			}
			for i := range c.packed {
				if r := c.row(i); r.failed == at && !r.copied && selected.has(id, &r) {
					return b.row(id, &r), true
				}
			}
		}
	}
	return Row{}, false // the lock is held: what was counted is there
}
