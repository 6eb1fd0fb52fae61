package dlq

import (
	"cmp"
	"slices"
)

// ClassCount counts the open letters of one class, and has its failures.
type ClassCount struct {
	// Class is empty for letters that have none. Folded reports that these are the letters of all
	// classes that are not counted apart: see [Summary.Failures].
	Class  string
	Folded bool
	// Open is the number of letters.
	Open int64
	// Failures are those of the class, the most frequent first. There is at least one.
	Failures []Failure
}

// Classes folds the failures by class, the class with the most open letters first. The numbers add
// up to Open.
func (s *Summary) Classes() []ClassCount {
	type name struct {
		class string
		rest  bool
	}
	var all []ClassCount
	at := map[name]int{}
	for _, f := range s.Failures {
		n := name{f.Class, f.Folded && f.Class == ""}
		i, ok := at[n]
		if !ok {
			i = len(all)
			at[n] = i
			all = append(all, ClassCount{Class: n.class, Folded: n.rest})
		}
		all[i].Open += f.Count
		all[i].Failures = append(all[i].Failures, f)
	}
	slices.SortStableFunc(all, func(a, b ClassCount) int {
		return cmp.Or(cmp.Compare(b.Open, a.Open), cmp.Compare(a.Class, b.Class), last(a.Folded, b.Folded))
	})
	return all
}
