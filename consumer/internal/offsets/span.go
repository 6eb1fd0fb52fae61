package offsets

import (
	"cmp"
	"slices"
)

// Span is a range of offsets, both ends included.
type Span struct{ First, Last int64 }

// In reports whether one of the spans, which ascend, has the offset.
func In(spans []Span, offset int64) bool {
	n, _ := slices.BinarySearchFunc(spans, offset, func(s Span, at int64) int { return cmp.Compare(s.Last, at) })
	return n < len(spans) && spans[n].First <= offset
}

// Intersect returns the offsets that the spans share with one more.
func Intersect(spans []Span, with Span) (all []Span) {
	for _, s := range spans {
		if first, last := max(s.First, with.First), min(s.Last, with.Last); first <= last {
			all = append(all, Span{first, last})
		}
	}
	return all
}

// Union returns the offsets of both as spans that ascend and do not touch.
func Union(a, b []Span) (all []Span) {
	both := slices.Concat(a, b)
	slices.SortFunc(both, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	for _, s := range both {
		if n := len(all); n > 0 && s.First <= all[n-1].Last+1 {
			all[n-1].Last = max(all[n-1].Last, s.Last)
		} else {
			all = append(all, s)
		}
	}
	return all
}

// Above returns what of spans lies at the floor or above.
func Above(spans []Span, floor int64) (all []Span) {
	for _, s := range spans {
		if s.Last >= floor {
			all = append(all, Span{max(s.First, floor), s.Last})
		}
	}
	return all
}
