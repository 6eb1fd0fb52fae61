package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// ordered: under OrderPartition no two records of a physical partition run at once, under OrderKey
// no two of a key in a lane. And none runs before an earlier one of these had its first attempt.
func ordered(ev *evidence, f *findings) {
	for _, s := range ev.services {
		if s.Order == consumer.OrderNone {
			continue
		}
		groups := map[string][]*delivered{}
		for at, feed := range s.feeds {
			for _, d := range feed.at {
				if d.of == nil {
					continue
				}
				name := fmt.Sprintf("%s/%d", at.Topic, at.Partition)
				if s.Order == consumer.OrderKey {
					if d.of.origin.Key == nil {
						continue
					}
					name = fmt.Sprintf("%s/%d/%s", d.of.origin.Topic, d.of.origin.Partition, d.of.origin.Key)
				}
				groups[name] = append(groups[name], d)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			overlaps(ev, groups[name], f)
			overtakes(ev, groups[name], f)
		}
	}
}

// overlaps checks that the runs of these deliveries do not overlap.
func overlaps(ev *evidence, all []*delivered, f *findings) {
	type interval struct {
		*trace.Run
		of *delivered
	}
	var runs []interval
	for _, d := range all {
		for _, r := range d.runs {
			runs = append(runs, interval{r, d})
		}
	}
	slices.SortFunc(runs, func(a, b interval) int { return cmp.Compare(a.Start, b.Start) })
	for i, b := range runs[min(1, len(runs)):] {
		a := runs[i]
		if until := ev.until(a.Run); until > b.Start {
			switch {
			case a.of.of.script.Ignores() && (a.Member != b.Member || ev.journals[a.Member].Renewed(a.Lane, a.Start, b.Start)):
				f.excluded["overlap with a handler that ignores its context"]++
			case a.Member != b.Member && (ev.zombie(a.Run) || ev.zombie(b.Run)):
				f.excluded["overlap with a zombie"]++
			default:
				f.add(b.of.of, b.of.of.origin, []*trace.Run{a.Run, b.Run}, "it ran together with record %d", a.ID)
			}
			if until > ev.until(b.Run) {
				runs[i+1] = a // it goes on
			}
		}
	}
}

// overtakes checks the order of first attempts on a source, but of what only a zombie ran.
func overtakes(ev *evidence, all []*delivered, f *findings) {
	var source []*delivered
	for _, d := range all {
		if d.copy == nil && len(d.runs) > 0 {
			source = append(source, d)
		}
	}
	slices.SortFunc(source, func(a, b *delivered) int { return cmp.Compare(a.offset, b.offset) })
	for i, b := range source[min(1, len(source)):] {
		if a := source[i]; b.runs[0].Start < a.runs[0].Start && (len(a.runs) > 1 || !ev.zombie(a.runs[0])) {
			f.add(b.of, b.of.origin, []*trace.Run{b.runs[0], a.runs[0]}, "it ran before record %d, which has a lower offset", a.of.id)
		}
	}
}
