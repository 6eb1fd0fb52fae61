package check

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// RecoverTime is how long a topic may need after an outage to be back at its speed.
const RecoverTime = 30 * time.Second

// outageRule: while all or many runs fail, the guard keeps records from the dead-letter topic. A
// process fails only as many for good as hold its topic, which is held by no fewer. Failed probes
// are no attempts, and no record whose handler would let it pass is dead-lettered. At the end, no
// topic is held beyond RecoverTime. While some fail, no record that never does waits longer than
// that.
func outageRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		healthy(ev, s, f)
		for _, r := range s.records {
			for _, c := range r.copies {
				probeCost(ev, r, c, f)
			}
			for _, c := range r.letters {
				probeCost(ev, r, c, f)
				if c.meta.Class == trace.ClassOutage {
					deadInOutage(ev, s, r, c, f)
				}
			}
		}
	}
	for _, w := range outages(ev, func(v trace.Verdict) bool { return v == trace.VerdictOutage }) {
		for _, name := range ev.membersOf(w.group) {
			openingCost(ev, name, w, f)
		}
	}
	for name, is := range ev.journals {
		heldInVain(name, is, f)
	}
	all := outages(ev, trace.Verdict.Down)
	for _, w := range all {
		for _, name := range ev.membersOf(w.group) {
			recovered(ev, name, w, all, f)
		}
	}
}

// outageOf is one outage of a service.
type outageOf struct {
	group    string
	from, to int64 // of the runs that failed
}

// outages returns the times in which the services' runs failed so.
func outages(ev *evidence, so func(trace.Verdict) bool) (all []outageOf) {
	for _, s := range ev.services {
		var failed []int64
		for _, r := range s.records {
			for _, x := range r.runs {
				if so(x.Verdict) {
					failed = append(failed, x.Start)
				}
			}
		}
		slices.Sort(failed)
		// Probes of one outage are 15 s apart at most.
		for _, at := range failed {
			if n := len(all); n > 0 && all[n-1].group == s.Group && at-all[n-1].to < int64(20*time.Second) {
				all[n-1].to = at
			} else {
				all = append(all, outageOf{s.Group, at, at})
			}
		}
	}
	return all
}

// inPart are the faults in which only some records of a service fail.
var inPart = []string{"tenants", "chance"}

// healthy checks that records whose runs never failed do not wait for those that fail. Only the
// time without other faults counts, and without suspects that outlast their timeouts.
func healthy(ev *evidence, s *served, f *findings) {
	outlasting := ev.outlasting(s)
	for _, w := range ev.windows {
		if !slices.Contains(inPart, w.Kind) {
			continue
		}
		calms := ev.calms(s, w.From, math.MaxInt64, 0, inPart...)
		for _, r := range s.records {
			at := ev.acked[r.id].At
			if at == 0 || at > w.To || len(r.runs) == 0 || r.runs[0].Verdict != trace.VerdictPassed || r.runs[0].Start < w.From {
				continue
			}
			f.counted["healthy records that were written or waited in a partial outage"]++
			from, to := max(at, w.From), r.runs[0].Start
			wait := trace.Overlap(calms, from, to) - trace.Overlap(outlasting, from, to)
			switch {
			case wait <= ev.recovers:
			case ev.readAgain(trace.TP{Topic: r.origin.Topic, Partition: r.origin.Partition}, w.From-trace.LineSlack, to):
				f.excluded["a healthy record waited behind a log that lost its end and was read again"]++
			default:
				f.add(r, r.origin, r.runs[:1], "it never failed, and waited for %v beside records that failed from %s on", wait, trace.ClockTime(w.From))
			}
		}
	}
}

// heldInVain checks that nearly all of a member's last source records had failed when its topic was
// held: those of a second, or a hundred. Suspects do not count.
func heldInVain(name string, is trace.Logged, f *findings) {
	for _, b := range is.Breakers {
		last, good := 0, 0
		for _, x := range slices.Backward(is.Runs) {
			if b.To != "held" || last >= 100 && x.Start < b.At-int64(time.Second) {
				break
			}
			if x.Start < b.At && x.End != 0 && x.Topic == x.Lane.Topic && !is.Suspected(x) {
				last++
				if x.Verdict != trace.VerdictPanic && x.Verdict != trace.VerdictFailed && !x.Verdict.Down() {
					good++
				}
			}
		}
		if 10*good > last {
			f.report(name, -1, -1, "its topic was held at %s, though %d of its last %d source records had not failed", trace.ClockTime(b.At), good, last)
		}
	}
}

// opens is how long after the begin of a hold there is certainly no probe: half of the first wait,
// since a member may log it late. The lanes know of it by then.
const opens = int64(500 * time.Millisecond)

// isProbe reports whether a run of the member began in a hold, of which its lanes knew.
func isProbe(t trace.Logged, r *trace.Run) bool {
	is := t.StateAt(r.Start)
	return is.To == "held" && r.Start >= is.At+opens
}

// probeCost checks that a failure in an outage which has a copy was none of a probe. Records that a
// worker had taken may begin after the hold.
func probeCost(ev *evidence, r *record, c *copied, f *findings) {
	if c.meta.Class != trace.ClassOutage || c.sent() {
		return
	}
	var runs []*trace.Run
	for _, x := range r.runs {
		if x.Life != c.life() || x.Attempt != c.failed() || !x.Verdict.Down() {
			continue
		}
		if logged := ev.journals[x.Member]; !isProbe(logged, x) || passedBy(logged, x) {
			return
		}
		runs = append(runs, x)
	}
	if len(runs) > 0 {
		f.add(r, c.rec, runs, "a failed probe has a copy in %s", c.rec.Topic)
	}
}

// passedBy reports whether a record passed in the hold in which x ran: before it, so there were no
// probes any more, or behind it, so it failed while others passed.
func passedBy(t trace.Logged, x *trace.Run) bool {
	hold := t.StateAt(x.Start)
	return slices.ContainsFunc(t.Runs, func(y *trace.Run) bool {
		return y.Verdict == trace.VerdictPassed && y.Topic == x.Topic && t.StateAt(y.Start) == hold &&
			(y.End < x.Start || y.Partition == x.Partition && y.Offset > x.Offset)
	})
}

// openingTime is how long a breaker may take to open: the half of its window.
const openingTime = int64(5 * time.Second)

// deadInOutage checks a letter of a record whose last attempt failed in an outage: the record had
// failed before for its own reasons, or further processes had to find out about the outage, or its
// tiers took less time than a breaker that opens.
func deadInOutage(ev *evidence, s *served, r *record, c *copied, f *findings) {
	if r.script.Times > 0 && r.script.Ending(s.Policy.MaxAttempts, c.life(), nil).Class != "" {
		f.counted["dead-lettered in an outage, having failed before"]++
		return
	}
	if slices.ContainsFunc(r.runs, func(x *trace.Run) bool { return x.Verdict.Down() && ev.disturbed(x.Member, x.Start, x.End) }) {
		f.excluded["dead-lettered, as processes came or went in an outage"]++
		return
	}
	if deadBeforeOpen(ev, r, c) {
		f.excluded["dead-lettered in an outage, before the breaker had opened"]++
		return
	}
	f.add(r, c.rec, r.runs, "it is dead-lettered because of an outage")
}

// deadBeforeOpen reports whether all attempts before a letter failed within openingTime, on a
// breaker that had not opened.
func deadBeforeOpen(ev *evidence, r *record, c *copied) bool {
	var first, last int64
	for _, x := range r.runs {
		if x.Life == c.life() {
			first, last = cmp.Or(first, x.Start), x.Start
			if is := ev.journals[x.Member].StateAt(x.Start); is.To != "closed" && x.Start >= is.At+opens {
				return false
			}
		}
	}
	return last-first < openingTime
}

// openingCost checks how many source records of an outage a process counted as failed: what strains
// the topic, and what ran then. Each may fail in tiers, too. In a strain it costs no attempt. The
// guard weighs them by the good runs before them, of which four outweigh a bad one, and an idle gap
// is no time.
func openingCost(ev *evidence, name string, w outageOf, f *findings) {
	m, all := ev.members[name], ev.journals[name].Runs
	cost, good := 0, 0
	const seconds, judges = 10, int64(time.Second) // nothing is strained sooner
	from, since := w.from, ranSince(all, w.from, seconds)
	if len(all) > 0 {
		from = max(from, all[0].Start) // of a process that starts in the outage
	}
	for _, x := range all {
		switch {
		case x.Verdict == trace.VerdictPassed && x.Start >= since && x.End < w.to:
			good++
		case x.Verdict == trace.VerdictOutage && x.Start >= from+judges && x.Start <= w.to && slices.Contains(m.Job.Service.Topics, x.Topic):
			if ev.journals[name].StateAt(x.Start).To == "closed" {
				cost++
			}
		}
	}
	inPlace := 1 + m.Job.Service.Policy.InPlace // each failed attempt is as many runs
	most := inPlace * (max(100, good/4) + 64)
	f.counted["runs of source records that failed in an outage, at a closed guard"] += cost
	if cost > most {
		f.report(name, -1, -1, "%d runs of source records failed in the outage from %s to %s while its topic was not strained, at most %d may",
			cost, trace.ClockTime(w.from), trace.ClockTime(w.to), most)
	}
}

// ranSince returns the begin of the last seconds before a time in which source records ran, so many
// of them.
func ranSince(all []*trace.Run, at int64, seconds int) (since int64) {
	since = at
	for _, x := range slices.Backward(all) {
		switch {
		case x.Start > since || x.Topic != x.Lane.Topic:
		case seconds == 0:
			return since
		default:
			since = x.Start - int64(time.Second)
			seconds--
		}
	}
	return since
}

// recovered checks that a member's breaker closes in time after an outage.
func recovered(ev *evidence, name string, w outageOf, all []outageOf, f *findings) {
	for _, o := range ev.windows { // no probe may have met its end
		if o.Down && o.From <= w.to && o.To > w.to && o.To-w.to < int64(20*time.Second) {
			w.to = o.To
		}
	}
	by := w.to + int64(ev.recovers)
	m := ev.members[name]
	if m.Began > w.to || m.Ended != 0 && m.Ended < by || slices.ContainsFunc(all, func(o outageOf) bool {
		return o.group == w.group && o.from > w.to && o.from < by
	}) {
		return
	}
	switch is := ev.journals[name].StateAt(by); {
	case is.To != "held":
	case slices.ContainsFunc(ev.journals[name].Runs, func(x *trace.Run) bool {
		return x.Start > w.to && x.Start < by && x.Verdict == trace.VerdictFailed && ev.journals[name].StateAt(x.Start).To == "held"
	}):
		f.excluded["breaker open after an outage, as a probe failed by its script"]++
	case ev.infra(w.to, by) || m.StoodStill(w.to, by):
		f.excluded["breaker open after an outage, with a broken broker or suspended"]++
	default:
		f.report(name, -1, -1, "its breaker is %s %v after the end of an outage, since %s", is.To, ev.recovers, trace.ClockTime(is.At))
	}
}
