package check

import (
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// early: no retry runs before its due time, and no due time lies before its tier's delay.
func early(ev *evidence, f *findings) {
	for _, s := range ev.services {
		delays := map[string]time.Duration{}
		for _, named := range s.siblings {
			for _, tier := range named.Tiers {
				delays[tier.Topic] = tier.Delay
			}
		}
		for _, feed := range s.feeds {
			if feed.source {
				continue
			}
			for _, d := range feed.at {
				if d.of == nil || d.copy.err != nil || d.copy.sent() {
					continue
				}
				m := d.copy.meta
				if wait := m.NotBefore.Sub(m.FailedAt); wait < delays[feed.Topic] {
					f.add(d.of, d.copy.rec, d.runs, "it is due %v after its failure, on a tier of %v", wait, delays[feed.Topic])
				}
				for _, r := range d.runs {
					// The clock of the host that runs it counts.
					due := m.NotBefore.Add(-ev.members[r.Member].Job.Skew)
					if r.Start < due.UnixNano() {
						f.add(d.of, d.copy.rec, []*trace.Run{r}, "it ran %v before it was due", due.Sub(time.Unix(0, r.Start)))
					}
				}
			}
		}
	}
}

// attemptsRule: a record has the attempts that its script and the policy give it.
func attemptsRule(ev *evidence, f *findings) {
	for s, r := range ev.records() {
		if r.own() {
			continue
		}
		had := r.attempts()
		lives := 0
		for _, x := range r.runs {
			lives = max(lives, x.Life)
		}
		for life := range lives + 1 {
			want := r.ending(s.Policy.MaxAttempts, life)
			without := r.script.Ending(s.Policy.MaxAttempts, life, nil)
			last := want.Attempts
			for _, c := range r.letters {
				if c.life() == life && ev.blamed(r, c) { // another rule's find, if it is one
					last = min(last, c.meta.Attempts)
				}
			}
			for n := 1; n <= want.Attempts; n++ {
				if n <= last && !had[delivery{life, n}] {
					f.add(r, r.origin, r.runs, "attempt %d is missing", n)
				}
				delete(had, delivery{life, n})
			}
			for of := range had {
				if of.life == life {
					f.add(r, r.origin, r.runs, "there is an attempt %d, and there should be %d", of.attempt, want.Attempts)
				}
			}
			for _, c := range r.letters {
				if is := c.ending(); c.life() == life && is != r.endingOf(c, s.Policy.MaxAttempts) && is != without && !ev.blamed(r, c) {
					f.add(r, c.rec, r.runs, "its letter says %d attempts, reason %s, class %s; want %d, %s, %s",
						c.meta.Attempts, c.meta.Reason, c.meta.Class, want.Attempts, want.Reason, want.Class)
				}
			}
		}
	}
}
