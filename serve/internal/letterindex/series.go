package letterindex

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Series counts the letters of a class by time.
type Series struct {
	// Class is empty in the series of the classes that have none of their own.
	Class string
	// Counts has a number for each time, the earliest first.
	Counts []int64
}

// mostTimes bounds the times of a picture.
const mostTimes = 1000

// Times counts by class and time the letters that a filter selects, resolved ones included and
// duplicates not: how many failed within each of n times of a length, the first of which begins at
// from. At most most classes have a series of their own, those with the most letters; the others
// are in one of class "". n is at most 1,000, and a length at least a millisecond.
//
// It takes memory for the series that it returns and for the classes that failed in these times,
// however many letters there are.
func (b *Index) Times(f *dlq.Filter, from time.Time, by time.Duration, n, most int) []Series {
	begin, length := from.UnixMilli(), max(by.Milliseconds(), 1)
	n, most = min(max(n, 0), mostTimes), max(most, 0)
	b.mu.RLock()
	defer b.mu.RUnlock()
	number := make([]int32, len(b.kinds.all)) // of the kind's class in all, from 1 on
	numbers := map[string]int32{}
	var all []Series
	var totals []int64
	end := begin + int64(n)*length
	shown := b.selects(f)
	splits := func(t *tally) bool {
		first, last := t.failed.first, t.failed.last
		return last >= begin && first < end && (first < begin || last >= end || (first-begin)/length != (last-begin)/length)
	}
	b.visit(shown, splits, func(t *tally) {
		if t.failed.first < begin || t.failed.first >= end || t.copied {
			return
		}
		at := number[t.kind]
		if at == 0 {
			class := b.kinds.all[t.kind].Class
			if at = numbers[class]; at == 0 {
				all, totals = append(all, Series{Class: class, Counts: make([]int64, n)}), append(totals, 0)
				at = int32(len(all))
				numbers[class] = at
			}
			number[t.kind] = at
		}
		all[at-1].Counts[(t.failed.first-begin)/length] += t.n
		totals[at-1] += t.n
	})
	total := func(s *Series) int64 { return totals[numbers[s.Class]-1] }
	slices.SortFunc(all, func(a, b Series) int {
		return cmp.Or(cmp.Compare(total(&b), total(&a)), cmp.Compare(a.Class, b.Class))
	})
	if len(all) <= most {
		return all
	}
	rest := Series{Counts: make([]int64, n)}
	for _, s := range all[most:] {
		for i, c := range s.Counts {
			rest.Counts[i] += c
		}
	}
	return append(all[:most:most], rest)
}
