package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// repeated: a delivery runs again only if its offset was not committed, and its lane had another
// owner, or began anew, as journals tell. What an owner handled that hands its lane over in order
// never runs again. A copy is written again only after a repetition.
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
				repetitions(ev, s, feed, d, samples, f)
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
				// A letter of a record that was condemned, and kills nothing, is another rule's.
				if !c.sent() && (c.meta.Reason != headers.Reason(reasonCrashLoop) || r.script.kills()) {
					copies[delivery{c.life(), c.failed()}]++
				}
			}
			for of, n := range copies {
				switch {
				case n <= failures[of] || r.script.killsAt(of.attempt) && n == 1:
				case r.script.killsAt(of.attempt):
					// Each owner that finds it condemned writes a letter, until one's is committed.
					f.counted["further letters of a record that kills"] += n - 1
				case clientRepeats(ev, r, of):
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
// written, or shortly before: what a killed broker no longer knows shows as a client reaches it.
func clientRepeats(ev *evidence, r *record, of delivery) bool {
	return slices.ContainsFunc(r.runs, func(x *run) bool {
		return x.life == of.life && x.attempt == of.attempt && ev.infra(x.end-learns, x.end+int64(20*time.Second))
	})
}

// repetitions checks the further runs of a delivery.
func repetitions(ev *evidence, s *served, feed *feed, d *delivered, samples []sample, f *findings) {
	rec := d.record()
	inPlace := 0 // retries in place of this delivery
	for i, b := range d.runs[min(1, len(d.runs)):] {
		a := d.runs[i]
		own := lastOf(d.runs[:i+1], b.member)
		if own == a && (a.verdict.mayStay() || a.own) && ev.told[a.member].opened(a.start, b.start) {
			f.counted["run again, as a probe or since the breaker opened"]++
			inPlace = 0
			continue
		}
		failed := a.verdict == verdictFailed || a.verdict.down()
		if own == a && failed && inPlace < s.Policy.InPlace && !ev.told[b.member].renewed(b.lane, own.start, b.start) {
			inPlace++
			continue
		}
		inPlace = 0
		if own != nil && (own == a || own.verdict == verdictPassed) && !ev.told[b.member].renewed(b.lane, own.start, b.start) {
			f.add(d.of, rec, d.runs, "%s ran it again, and its lane had not ended", b.member)
			continue
		}
		if a.verdict == verdictDrained {
			continue
		}
		again := ev.readAgain(feed.tp, a.start-lineSlack, b.start)
		switch {
		case a.verdict == verdictNone:
			f.counted["repeated after its process died in it"]++
		case again:
			f.counted["repeated, as the log lost its end and was read again"]++
		case own == a:
			f.counted["repeated by its member, whose lane had ended"]++
		default:
			f.counted["repeated by another member"]++
		}
		if at, by, ok := handedOver(ev, feed.tp, d.runs[:i+1], b); ok && !again {
			f.add(d.of, rec, d.runs, "it ran again, though %s had finished it, and handed its lane over in order at %s", by, clockTime(at))
			continue
		}
		// The last samples before the lane began, and before the repetition.
		began := ev.told[b.member].begunBy(b.lane, b.start)
		first, last := lastBefore(samples, began), lastBefore(samples, b.start-int64(200*time.Millisecond))
		switch {
		case last == nil || last.ended <= a.start || !last.holds(feed.tp, d.offset, rec.LeaderEpoch) || !ev.knows(last, feed.tp, d.offset, d):
		case again || ev.readAgain(feed.tp, last.ended-int64(5*time.Second), b.start):
		case ev.zombie(b) && !(first != nil && first.ended > a.start && first.holds(feed.tp, d.offset, rec.LeaderEpoch) && ev.knows(first, feed.tp, d.offset, d)):
			f.excluded["repeated by a zombie"]++
		default:
			f.add(d.of, rec, d.runs, "it ran again, though %d had been committed by %s, with metadata %q", last.committed[feed.tp],
				clockTime(last.ended), last.metadata[feed.tp])
		}
	}
}

// lastOf returns the last of the runs that is a member's; nil if there is none.
func lastOf(runs []*run, member string) *run {
	for _, r := range slices.Backward(runs) {
		if r.member == member {
			return r
		}
	}
	return nil
}

// lastBefore returns the last sample before a time; nil if there is none.
func lastBefore(samples []sample, at int64) *sample {
	n, _ := slices.BinarySearchFunc(samples, at, func(x sample, t int64) int { return cmp.Compare(x.ended, t) })
	if n == 0 {
		return nil
	}
	return &samples[n-1]
}

// handedOver returns who had handled a record of a feed, and when it handed the lane over in order,
// before the lane of a later run began. Before a log was read again, none did.
func handedOver(ev *evidence, feed tp, before []*run, later *run) (at int64, by string, ok bool) {
	began := ev.told[later.member].begunBy(later.lane, later.start)
	for _, r := range before {
		if r.verdict != verdictPassed {
			continue
		}
		if at, ok := ev.told[r.member].handedOver(r); ok && at < began && !ev.readAgain(feed, at, later.start) {
			return at, r.member, true
		}
	}
	return 0, "", false
}
