package chaos

import (
	"cmp"
	"slices"
	"time"
)

// repeated: a delivery runs again only if its offset was not committed, and its lane had another
// owner, or the same one anew. A copy is written again only after such a repetition.
func repeated(ev *evidence, f *findings) {
	for _, s := range ev.services {
		var samples []sample
		for _, sample := range ev.samples {
			if sample.group == s.Group {
				samples = append(samples, sample)
			}
		}
		for _, feed := range s.feeds {
			for _, d := range feed.at {
				if d.of == nil {
					continue
				}
				ev.repetitions(s, feed, d, samples, f)
			}
		}
		for _, r := range s.records {
			failures, copies := map[delivery]int{}, map[delivery]int{}
			for _, x := range r.runs {
				if x.verdict != verdictPassed && x.verdict != verdictDiscard && x.verdict != verdictDrained && x.verdict != verdictNone {
					failures[delivery{x.life, x.attempt}]++
				}
			}
			for _, c := range slices.Concat(r.copies, r.letters) {
				if !c.sent() {
					copies[delivery{c.life(), c.meta.Attempts}]++
				}
			}
			for of, n := range copies {
				switch {
				case n <= failures[of] || r.script.killsAt(of.attempt) && n == 1:
				case r.script.killsAt(of.attempt):
					// Each owner that finds it condemned writes a letter, until one's is committed.
					f.counted["further letters of a record that kills"] += n - 1
				case ev.clientRepeats(r, of):
					// A client that fails one partition's copies takes a new epoch for all, and
					// sends again what was in flight to others.
					f.excluded["copied again by the client"] += n - failures[of]
				default:
					f.add(r, r.origin, r.runs, "it has %d copies of its attempt %d, which failed %d times", n, of.attempt, failures[of])
				}
			}
		}
	}
}

// clientRepeats reports whether brokers or networks failed when the copies of a delivery were
// written.
func (ev *evidence) clientRepeats(r *record, of delivery) bool {
	return slices.ContainsFunc(r.runs, func(x *run) bool {
		return x.life == of.life && x.attempt == of.attempt && ev.infra(x.end, x.end+int64(20*time.Second))
	})
}

// delivery numbers a record's attempts, in each of its lives.
type delivery struct{ life, attempt int }

func (ev *evidence) repetitions(s *served, feed *feed, d *delivered, samples []sample, f *findings) {
	rec := d.record()
	inPlace := 0 // retries in place of this delivery
	for i, b := range d.runs[min(1, len(d.runs)):] {
		a := d.runs[i]
		if a.member == b.member && ev.told[a.member].opened(a.start, b.start) {
			f.counted["run again, as a probe or since the breaker opened"]++
			continue
		}
		failed := a.verdict == verdictFailed || a.verdict == verdictOutage
		if a.member == b.member && failed && inPlace < s.Policy.InPlace {
			inPlace++
			continue
		}
		inPlace = 0
		if a.verdict == verdictDrained {
			continue
		}
		if a.member == b.member && !ev.disturbed(a.member, a.start, b.start) {
			f.add(d.of, rec, d.runs, "%s ran it again, and nothing had happened to it", b.member)
			continue
		}
		switch {
		case a.verdict == verdictNone:
			f.counted["repeated after its process died in it"]++
		case a.member == b.member:
			f.excluded["repeated by its member, which may have lost the lane"]++
		default:
			f.counted["repeated"]++
		}
		// The last sample before the repetition.
		n, _ := slices.BinarySearchFunc(samples, b.start-int64(200*time.Millisecond), func(x sample, t int64) int { return cmp.Compare(x.ended, t) })
		switch {
		case n == 0 || samples[n-1].ended <= a.start || !samples[n-1].holds(feed.tp, d.offset, rec.LeaderEpoch):
		case ev.isCut(feed.tp, d.offset):
			f.excluded["repeated beyond an older log's end"]++
		case ev.zombie(b):
			f.excluded["repeated by a zombie"]++
		default:
			f.add(d.of, rec, d.runs, "it ran again, though %d had been committed by %s, with metadata %q", samples[n-1].committed[feed.tp],
				clockTime(samples[n-1].ended), samples[n-1].metadata[feed.tp])
		}
	}
}
