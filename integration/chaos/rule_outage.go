package chaos

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// outageRule: while all or many runs fail, the guard keeps records from the dead-letter topic. A
// process fails only as many for good as hold its topic, which is held by no fewer. Failed probes
// are no attempts, and no record whose handler would let it pass is dead-lettered. At the end, no
// topic is held beyond recoverTime. While some fail, no record that never does waits longer than
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
				if c.meta.Class == classOutage {
					deadInOutage(ev, s, r, c, f)
				}
			}
		}
	}
	for _, w := range outages(ev, func(v verdict) bool { return v == verdictOutage }) {
		for _, name := range ev.membersOf(w.group) {
			openingCost(ev, name, w, f)
		}
	}
	for name, is := range ev.told {
		heldInVain(name, is, f)
	}
	all := outages(ev, verdict.down)
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
func outages(ev *evidence, so func(verdict) bool) (all []outageOf) {
	for _, s := range ev.services {
		var failed []int64
		for _, r := range s.records {
			for _, x := range r.runs {
				if so(x.verdict) {
					failed = append(failed, x.start)
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
		if !slices.Contains(inPart, w.kind) {
			continue
		}
		calms := ev.calms(s, w.from, math.MaxInt64, 0, inPart...)
		for _, r := range s.records {
			at := ev.acked[r.id].at
			if at == 0 || at > w.to || len(r.runs) == 0 || r.runs[0].verdict != verdictPassed || r.runs[0].start < w.from {
				continue
			}
			f.counted["healthy records that were written or waited in a partial outage"]++
			from, to := max(at, w.from), r.runs[0].start
			wait := overlap(calms, from, to) - overlap(outlasting, from, to)
			switch {
			case wait <= ev.recovers:
			case ev.readAgain(tp{r.origin.Topic, r.origin.Partition}, w.from-lineSlack, to):
				f.excluded["a healthy record waited behind a log that lost its end and was read again"]++
			default:
				f.add(r, r.origin, r.runs[:1], "it never failed, and waited for %v beside records that failed from %s on", wait, clockTime(w.from))
			}
		}
	}
}

// heldInVain checks that nearly all of a member's last source records had failed when its topic was
// held: those of a second, or a hundred. Suspects do not count.
func heldInVain(name string, is told, f *findings) {
	for _, b := range is.breakers {
		last, good := 0, 0
		for _, x := range slices.Backward(is.runs) {
			if b.to != "held" || last >= 100 && x.start < b.at-int64(time.Second) {
				break
			}
			if x.start < b.at && x.end != 0 && x.topic == x.lane.topic && !is.suspected(x) {
				last++
				if x.verdict != verdictPanic && x.verdict != verdictFailed && !x.verdict.down() {
					good++
				}
			}
		}
		if 10*good > last {
			f.note(name, -1, -1, "its topic was held at %s, though %d of its last %d source records had not failed", clockTime(b.at), good, last)
		}
	}
}

// opens is how long after the begin of a hold there is certainly no probe: half of the first wait,
// since a member may tell late of it. The lanes know of it by then.
const opens = int64(500 * time.Millisecond)

// isProbe reports whether a run of the member began in a hold, of which its lanes knew.
func isProbe(t told, r *run) bool {
	is := t.stateAt(r.start)
	return is.to == "held" && r.start >= is.at+opens
}

// probeCost checks that a failure in an outage which has a copy was none of a probe. Records that a
// worker had taken may begin after the hold.
func probeCost(ev *evidence, r *record, c *copied, f *findings) {
	if c.meta.Class != classOutage || c.sent() {
		return
	}
	var runs []*run
	for _, x := range r.runs {
		if x.life != c.life() || x.attempt != c.failed() || !x.verdict.down() {
			continue
		}
		if told := ev.told[x.member]; !isProbe(told, x) || passedBy(told, x) {
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
func passedBy(t told, x *run) bool {
	hold := t.stateAt(x.start)
	return slices.ContainsFunc(t.runs, func(y *run) bool {
		return y.verdict == verdictPassed && y.topic == x.topic && t.stateAt(y.start) == hold &&
			(y.end < x.start || y.partition == x.partition && y.offset > x.offset)
	})
}

// openingTime is how long a breaker may take to open: the half of its window.
const openingTime = int64(5 * time.Second)

// deadInOutage checks a letter of a record whose last attempt failed in an outage: the record had
// failed before for its own reasons, or further processes had to find out about the outage, or its
// tiers took less time than a breaker that opens.
func deadInOutage(ev *evidence, s *served, r *record, c *copied, f *findings) {
	if r.script.times > 0 && r.script.ending(s.Policy.MaxAttempts, c.life(), nil).class != "" {
		f.counted["dead-lettered in an outage, having failed before"]++
		return
	}
	if slices.ContainsFunc(r.runs, func(x *run) bool { return x.verdict.down() && ev.disturbed(x.member, x.start, x.end) }) {
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
		if x.life == c.life() {
			first, last = cmp.Or(first, x.start), x.start
			if is := ev.told[x.member].stateAt(x.start); is.to != "closed" && x.start >= is.at+opens {
				return false
			}
		}
	}
	return last-first < openingTime
}

// openingCost checks how many source records of an outage a process counted as failed: what strains
// the topic, and what ran then. Each may fail in tiers, too. In a strain it costs no attempt.
func openingCost(ev *evidence, name string, w outageOf, f *findings) {
	m := ev.members[name]
	cost, good := 0, 0
	const window, judges = int64(10 * time.Second), int64(time.Second) // nothing is strained sooner
	from := w.from
	if all := ev.told[name].runs; len(all) > 0 {
		from = max(from, all[0].start) // of a process that starts in the outage
	}
	for _, x := range ev.told[name].runs {
		switch {
		case x.verdict == verdictPassed && x.end > w.from-window && x.end < w.to:
			good++
		case x.verdict == verdictOutage && x.start >= from+judges && x.start <= w.to && slices.Contains(m.job.Service.Topics, x.topic):
			if ev.told[name].stateAt(x.start).to == "closed" {
				cost++
			}
		}
	}
	inPlace := 1 + m.job.Service.Policy.InPlace // each failed attempt is as many runs
	most := inPlace * (max(100, good) + 64)
	f.counted["runs of source records that failed in an outage, at a closed guard"] += cost
	if cost > most {
		f.note(name, -1, -1, "%d runs of source records failed in the outage from %s to %s while its topic was not strained, at most %d may",
			cost, clockTime(w.from), clockTime(w.to), most)
	}
}

// recovered checks that a member's breaker closes in time after an outage.
func recovered(ev *evidence, name string, w outageOf, all []outageOf, f *findings) {
	for _, o := range ev.windows { // no probe may have met its end
		if o.down && o.from <= w.to && o.to > w.to && o.to-w.to < int64(20*time.Second) {
			w.to = o.to
		}
	}
	by := w.to + int64(ev.recovers)
	m := ev.members[name]
	if m.began > w.to || m.ended != 0 && m.ended < by || slices.ContainsFunc(all, func(o outageOf) bool {
		return o.group == w.group && o.from > w.to && o.from < by
	}) {
		return
	}
	switch is := ev.told[name].stateAt(by); {
	case is.to != "held":
	case slices.ContainsFunc(ev.told[name].runs, func(x *run) bool {
		return x.start > w.to && x.start < by && x.verdict == verdictFailed && ev.told[name].stateAt(x.start).to == "held"
	}):
		f.excluded["breaker open after an outage, as a probe failed by its script"]++
	case ev.infra(w.to, by) || slices.ContainsFunc(m.suspended, func(s [2]int64) bool { return s[0] < by && s[1] > w.to }):
		f.excluded["breaker open after an outage, with a broken broker or suspended"]++
	default:
		f.note(name, -1, -1, "its breaker is %s %v after the end of an outage, since %s", is.to, ev.recovers, clockTime(is.at))
	}
}
