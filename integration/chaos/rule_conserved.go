package chaos

import (
	"maps"
	"slices"

	"github.com/sidingkafka/siding/classify"
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
				places := r.places(life)
				want := r.ending(s.Policy.MaxAttempts, life).place
				switch {
				case len(places) == 0:
					f.add(r, r.origin, r.runs, "it is lost: neither handled nor dead-lettered nor discarded, redriven %d times", life)
				// What its repetition does is not for a script to say.
				case r.own() && (len(places) == 1 || len(r.runs) > len(r.attempts())):
				case slices.ContainsFunc(r.letters, func(c *copied) bool { return ev.condemned(r, c) }):
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
	for _, s := range ev.services {
		for id := range s.records {
			known[id] = true
		}
	}
	for id, w := range ev.acked {
		if !known[id] {
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: id, Topic: w.topic, Partition: w.partition, Offset: w.offset,
				Text: "the brokers acknowledged it, and it is not in its topic: the brokers lost it",
			})
		}
	}
}

// ending is what has to become of the record, with the attempts that failed whatever its script
// says.
func (r *record) ending(maxAttempts, life int) ending {
	return r.script.ending(maxAttempts, life, func(attempt int) string { return r.failedAs(life, attempt) })
}

// failedAs returns the class, as its copy has it, with which an attempt failed whatever the script
// says: in an outage, or since its process was suspended, or got no CPU time, until its time was
// over. It is empty for an attempt of which no copy says so. Attempt 0 stands for any.
func (r *record) failedAs(life, attempt int) string {
	for _, c := range slices.Concat(r.copies, r.letters) {
		if c.life() != life || (c.meta.Attempts != attempt || c.failed() != attempt) && attempt != 0 {
			continue
		}
		stalled := func(x *run) bool { return x.stalled && x.life == life && x.attempt == c.failed() }
		timedOut := c.meta.Class == classify.ClassTimeout || c.meta.Class == classify.ClassDecode+"."+classify.ClassTimeout
		if c.meta.Class == classOutage || timedOut && slices.ContainsFunc(r.runs, stalled) {
			return c.meta.Class
		}
	}
	return ""
}

// places are where a record went in one of its lives.
func (r *record) places(life int) (all []place) {
	add := func(p place, in bool) {
		if in {
			all = append(all, p)
		}
	}
	ended := func(v verdict) bool {
		return slices.ContainsFunc(r.runs, func(x *run) bool { return x.life == life && x.verdict == v })
	}
	add(placeHandled, ended(verdictPassed))
	add(placeDiscarded, ended(verdictDiscard))
	add(placeDead, slices.ContainsFunc(r.letters, func(c *copied) bool { return c.life() == life }))
	return all
}

// attempts are the deliveries of the record that ran.
func (r *record) attempts() map[delivery]bool {
	had := map[delivery]bool{}
	for _, x := range r.runs {
		had[delivery{x.life, x.attempt}] = true
	}
	return had
}

// own reports whether the team's handler failed, and so decided about the record.
func (r *record) own() bool {
	return slices.ContainsFunc(r.runs, func(x *run) bool { return x.own })
}
