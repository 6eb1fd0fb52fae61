package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// repeated: a delivery runs again only if its offset was not committed, and its lane had another
// owner, or began anew, by the journals. What an owner handled that hands its lane over in order
// never runs again. A copy is written again only after a repetition.
func repeated(ev *evidence, f *findings) {
	for _, s := range ev.services {
		samples := ev.samplesOf(s.Group)
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
				if x.Verdict != trace.VerdictPassed && x.Verdict != trace.VerdictDiscard && x.Verdict != trace.VerdictDrained && x.Verdict != trace.VerdictNone {
					failures[delivery{x.Life, x.Attempt}]++
				}
			}
			for _, c := range slices.Concat(r.copies, r.letters) {
				// A letter of a record that was condemned, and kills nothing, is another rule's.
				if !c.sent() && (c.meta.Reason != headers.Reason(trace.ReasonCrashLoop) || r.script.Kills()) {
					copies[delivery{c.life(), c.failed()}]++
				}
			}
			for of, n := range copies {
				switch {
				case n <= failures[of] || r.script.KillsAt(of.attempt) && n == 1:
				case r.script.KillsAt(of.attempt):
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
	return slices.ContainsFunc(r.runs, func(x *trace.Run) bool {
		return x.Life == of.life && x.Attempt == of.attempt && ev.infra(x.End-learns, x.End+int64(20*time.Second))
	})
}

// repetitions checks the further runs of a delivery.
func repetitions(ev *evidence, s *served, feed *feed, d *delivered, samples []*trace.Sample, f *findings) {
	rec := d.record()
	inPlace := 0 // retries in place of this delivery
	for i, b := range d.runs[min(1, len(d.runs)):] {
		a := d.runs[i]
		own := lastOf(d.runs[:i+1], b.Member)
		if own == a && (a.Verdict.MayStay() || a.Own) && ev.journals[a.Member].Opened(a.Start, b.Start) {
			f.counted["run again, as a probe or since the breaker opened"]++
			inPlace = 0
			continue
		}
		failed := a.Verdict == trace.VerdictFailed || a.Verdict.Down()
		if own == a && failed && inPlace < s.Policy.InPlace && !ev.journals[b.Member].Renewed(b.Lane, own.Start, b.Start) {
			inPlace++
			continue
		}
		inPlace = 0
		if own != nil && (own == a || own.Verdict == trace.VerdictPassed) && !ev.journals[b.Member].Renewed(b.Lane, own.Start, b.Start) {
			f.add(d.of, rec, d.runs, "%s ran it again, and its lane had not ended", b.Member)
			continue
		}
		if a.Verdict == trace.VerdictDrained {
			continue
		}
		again := ev.readAgain(feed.TP, a.Start-trace.LineSlack, b.Start)
		switch {
		case a.Verdict == trace.VerdictNone:
			f.counted["repeated after its process died in it"]++
		case again:
			f.counted["repeated, as the log lost its end and was read again"]++
		case own == a:
			f.counted["repeated by its member, whose lane had ended"]++
		default:
			f.counted["repeated by another member"]++
		}
		if at, by, ok := handedOver(ev, feed.TP, d.runs[:i+1], b); ok && !again {
			f.add(d.of, rec, d.runs, "it ran again, though %s had finished it, and handed its lane over in order at %s", by, trace.ClockTime(at))
			continue
		}
		// The last samples before the lane began, and before the repetition.
		began := ev.journals[b.Member].BegunBy(b.Lane, b.Start)
		first, last := lastBefore(samples, began), lastBefore(samples, b.Start-int64(200*time.Millisecond))
		switch {
		case last == nil || last.Ended <= a.Start || !last.Holds(feed.TP, d.offset, rec.LeaderEpoch) || !ev.knows(last, feed.TP, d.offset, d):
		case again || ev.readAgain(feed.TP, last.Ended-int64(5*time.Second), b.Start):
		case ev.zombie(b) && !(first != nil && first.Ended > a.Start && first.Holds(feed.TP, d.offset, rec.LeaderEpoch) && ev.knows(first, feed.TP, d.offset, d)):
			f.excluded["repeated by a zombie"]++
		default:
			f.add(d.of, rec, d.runs, "it ran again, though %d had been committed by %s, with metadata %q", last.Committed[feed.TP],
				trace.ClockTime(last.Ended), last.Metadata[feed.TP])
		}
	}
}

// lastOf returns the last of the runs that is a member's; nil if there is none.
func lastOf(runs []*trace.Run, member string) *trace.Run {
	for _, r := range slices.Backward(runs) {
		if r.Member == member {
			return r
		}
	}
	return nil
}

// lastBefore returns the last sample before a time; nil if there is none.
func lastBefore(samples []*trace.Sample, at int64) *trace.Sample {
	n, _ := slices.BinarySearchFunc(samples, at, func(x *trace.Sample, t int64) int { return cmp.Compare(x.Ended, t) })
	if n == 0 {
		return nil
	}
	return samples[n-1]
}

// handedOver returns who had handled a record of a feed, and when it handed the lane over in order,
// before the lane of a later run began. Before a log was read again, none did.
func handedOver(ev *evidence, feed trace.TP, before []*trace.Run, later *trace.Run) (at int64, by string, ok bool) {
	began := ev.journals[later.Member].BegunBy(later.Lane, later.Start)
	for _, r := range before {
		if r.Verdict != trace.VerdictPassed {
			continue
		}
		if at, ok := ev.journals[r.Member].HandedOver(r); ok && at < began && !ev.readAgain(feed, at, later.Start) {
			return at, r.Member, true
		}
	}
	return 0, "", false
}
