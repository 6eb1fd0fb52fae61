package check

import (
	"maps"
	"slices"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// conserved: each record is in exactly one place, the one that its script says. No record is lost.
// A record that was redriven had a place before, as a dead letter, and has one after.
func conserved(ev *evidence, f *findings) {
	for _, s := range ev.services {
		lives := map[int64]int{}
		for _, c := range s.redriven {
			lives[c.of.id] = max(lives[c.of.id], c.life())
		}
		for _, id := range slices.Sorted(maps.Keys(s.records)) {
			r := s.records[id]
			for life := range lives[id] + 1 {
				places := places(r, life)
				want := r.ending(s.Policy.MaxAttempts, life).Place
				switch {
				case len(places) == 0:
					f.add(r, r.origin, r.runs, "it is lost: neither handled nor dead-lettered nor discarded, redriven %d times", life)
				// What its repetition does is not for a script to say.
				case r.own() && (len(places) == 1 || len(r.runs) > len(r.attempts())):
				case slices.ContainsFunc(r.letters, func(c *copied) bool { return ev.blamed(r, c) }):
				case !slices.Contains(places, want):
					f.add(r, r.origin, r.runs, "it is %v, and should be %s", places, want)
				case len(places) > 1 && r.failedAs(life, 0) != "":
					f.excluded["in two places, as it was repeated in an outage, or timed out in a suspended process"]++
				case len(places) > 1:
					f.add(r, r.origin, r.runs, "it is in %d places: %v", len(places), places)
				}
			}
		}
	}
	if len(ev.lost) > 0 {
		f.excluded["lost by the brokers, with the end of a log"] = len(ev.lost)
	}
	known := map[int64]bool{}
	for _, r := range ev.records() {
		known[r.id] = true
	}
	for id, w := range ev.acked {
		if !known[id] {
			f.broken = append(f.broken, Finding{
				Rule: f.rule, Record: id, Topic: w.Topic, Partition: w.Partition, Offset: w.Offset,
				Text: "the brokers acknowledged it, and it is not in its topic: the brokers lost it",
			})
		}
	}
}

// places are where a record went in one of its lives.
func places(r *record, life int) (all []trace.Place) {
	add := func(p trace.Place, in bool) {
		if in {
			all = append(all, p)
		}
	}
	ended := func(v trace.Verdict) bool {
		return slices.ContainsFunc(r.runs, func(x *trace.Run) bool { return x.Life == life && x.Verdict == v })
	}
	add(trace.PlaceHandled, ended(trace.VerdictPassed))
	add(trace.PlaceDiscarded, ended(trace.VerdictDiscard))
	add(trace.PlaceDead, slices.ContainsFunc(r.letters, func(c *copied) bool { return c.life() == life }))
	return all
}
