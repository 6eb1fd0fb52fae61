package chaos

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// rule is a promise that the checker holds a run to.
type rule struct {
	name  string
	check func(*evidence, *findings)
}

// rules are all of them. A new promise is a new line here.
var rules = []rule{
	{"conserved", conserved},
	{"committed", committedRule},
	{"rewound", rewound},
	{"repeated", repeated},
	{"order", ordered},
	{"early", early},
	{"attempts", attemptsRule},
	{"headers", headersRule},
	{"stuck", stuck},
	{"stalled", stalled},
	{"prompt", prompt},
	{"metrics", metricsRule},
	{"ledger", ledgerRule},
	{"died", diedRule},
	{"ended", endedRule},
	{"crash-loop", crashLoop},
}

// findings are what a rule found.
type findings struct {
	rule    string
	broken  []Violation
	counted map[string]int
}

// add notes a violation about a record of a feed.
func (f *findings) add(of *record, at *kgo.Record, runs []*run, format string, args ...any) {
	v := Violation{
		Rule: f.rule, Record: of.id, Topic: at.Topic, Partition: at.Partition, Offset: at.Offset,
		Text: fmt.Sprintf(format, args...) + fmt.Sprintf(" (its script: %s, %d times, %s)", of.script.act, of.script.times, of.script.class),
	}
	for _, r := range runs {
		v.Lines = append(v.Lines, r.String())
	}
	f.broken = append(f.broken, v)
}

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
				want := r.script.ending(s.Policy.MaxAttempts, life).place
				switch {
				case len(places) == 0:
					f.add(r, r.origin, r.runs, "it is lost: neither handled nor dead-lettered nor discarded, redriven %d times", life)
				case r.own():
				case !slices.Contains(places, want):
					f.add(r, r.origin, r.runs, "it is %v, and should be %s", places, want)
				case len(places) > 1:
					f.add(r, r.origin, r.runs, "it is in %d places: %v", len(places), places)
				}
			}
		}
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

// own reports whether the team's handler decided about the record.
func (r *record) own() bool {
	return slices.ContainsFunc(r.runs, func(x *run) bool { return x.verdict == verdictOwn })
}

// committedRule: no commit passes a record that was not finished, nor names one as finished above
// its offset. Of a record that failed, the copy must be in its sibling by then.
func committedRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		passed, named := map[tp]int64{}, map[*delivered]bool{}
		for i := range ev.samples {
			sample := &ev.samples[i]
			if sample.group != s.Group {
				continue
			}
			look := func(at tp, offset int64, how string) {
				d := s.feeds[at].at[offset]
				if d == nil || d.of == nil || d.finished(sample) {
					return
				}
				f.add(d.of, d.record(), d.of.runs, "%s before it was finished, with the offset %d, as seen between %s and %s; %s",
					how, sample.committed[at], clockTime(sample.began), clockTime(sample.ended), d.of.copiesBy(sample))
			}
			for at, floor := range sample.committed {
				feed := s.feeds[at]
				if feed == nil {
					continue
				}
				for offset := passed[at]; offset < floor; offset++ {
					look(at, offset, "it was committed")
				}
				passed[at] = max(passed[at], floor)
				for _, offset := range finishedAbove(sample.metadata[at], floor) {
					if d := feed.at[offset]; d != nil && !named[d] {
						named[d] = true
						f.counted["named as finished above a floor"]++
						look(at, offset, "it was named as finished")
					}
				}
			}
		}
	}
}

// copiesBy says where a record's copies are, and where the siblings ended in a sample.
func (r *record) copiesBy(s *sample) string {
	var all []string
	for _, c := range slices.Concat(r.copies, r.letters) {
		all = append(all, fmt.Sprintf("the copy of attempt %d is at %s/%d/%d, which ended at %d", c.meta.Attempts,
			c.rec.Topic, c.rec.Partition, c.rec.Offset, s.ends[tp{c.rec.Topic, c.rec.Partition}]))
	}
	return cmp.Or(strings.Join(all, ", "), "it has no copy")
}

// clockTime is a time for people.
func clockTime(nanos int64) string { return time.Unix(0, nanos).Format("15:04:05.000") }

// record is the record as it was delivered.
func (d *delivered) record() *kgo.Record {
	if d.copy != nil {
		return d.copy.rec
	}
	return d.of.origin
}

// rewound: no committed offset goes back.
func rewound(ev *evidence, f *findings) {
	last := map[string]map[tp]int64{}
	for _, s := range ev.samples {
		if last[s.group] == nil {
			last[s.group] = map[tp]int64{}
		}
		for at, floor := range s.committed {
			if before := last[s.group][at]; floor < before {
				f.broken = append(f.broken, Violation{
					Rule: f.rule, Record: -1, Topic: at.topic, Partition: at.partition, Offset: floor,
					Text: fmt.Sprintf("%d was committed, and later %d, as seen at %s", before, floor, clockTime(s.ended)),
				})
			}
			last[s.group][at] = floor
		}
	}
}

// finished reports whether a delivery had an end by the time of a sample.
func (d *delivered) finished(at *sample) bool {
	for _, r := range d.runs {
		if r.end != 0 && r.end <= at.ended && (r.verdict == verdictPassed || r.verdict == verdictDiscard) {
			return true
		}
	}
	attempt, life := 1, 0
	if d.copy != nil {
		attempt, life = d.copy.meta.Attempts+1, d.copy.life()
	}
	for _, c := range slices.Concat(d.of.copies, d.of.letters) {
		end, known := at.ends[tp{c.rec.Topic, c.rec.Partition}]
		if c.meta.Attempts == attempt && c.life() == life && (!known || c.rec.Offset < end) {
			return true
		}
	}
	return false
}

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
				case n <= failures[of]:
				case ev.clientRepeats(r, of):
					// A client that fails one partition's copies takes a new epoch for all, and
					// sends again what was in flight to others.
					f.counted["copied again by the client"] += n - failures[of]
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

// infra reports whether brokers or networks failed in a time.
func (ev *evidence) infra(from, to int64) bool {
	return slices.ContainsFunc(ev.windows, func(w window) bool { return kindNamed(w.kind).infra && w.from < to && w.to > from })
}

// delivery numbers a record's attempts, in each of its lives.
type delivery struct{ life, attempt int }

func (ev *evidence) repetitions(s *served, feed *feed, d *delivered, samples []sample, f *findings) {
	rec := d.record()
	inPlace := 0 // retries in place of this delivery
	for i, b := range d.runs[min(1, len(d.runs)):] {
		a := d.runs[i]
		if a.member == b.member && a.verdict == verdictFailed && inPlace < s.Policy.InPlace {
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
		if a.verdict == verdictNone {
			f.counted["repeated after its process died in it"]++
		} else {
			f.counted["repeated"]++
		}
		// The last sample before the repetition.
		n, _ := slices.BinarySearchFunc(samples, b.start-int64(200*time.Millisecond), func(x sample, t int64) int { return cmp.Compare(x.ended, t) })
		switch {
		case n == 0 || samples[n-1].ended <= a.start || !samples[n-1].holds(feed.tp, d.offset, rec.LeaderEpoch):
		case ev.zombie(b):
			f.counted["repeated by a zombie"]++
		default:
			f.add(d.of, rec, d.runs, "it ran again, though %d had been committed by %s, with metadata %q", samples[n-1].committed[feed.tp],
				clockTime(samples[n-1].ended), samples[n-1].metadata[feed.tp])
		}
	}
}

// disturbed reports whether a member may have lost a lane and got it again between two times: a
// member of its service came or went, or was suspended, or brokers failed.
func (ev *evidence) disturbed(name string, from, to int64) bool {
	m := ev.members[name]
	from -= int64(session + 10*time.Second) // what happened before may show late
	for _, other := range ev.members {
		if other.service != m.service {
			continue
		}
		if other.began > from && other.began < to || other.ended > from && other.ended < to {
			return true
		}
		for _, s := range other.suspended {
			if s[0] < to && s[1] > from {
				return true
			}
		}
	}
	return ev.infra(from, to)
}

// zombie reports whether the run's member may not have known that its lane is another's: it was
// suspended, or cut off from the brokers, shortly before.
func (ev *evidence) zombie(r *run) bool {
	slack := int64(5 * time.Second)
	for _, s := range ev.members[r.member].suspended {
		if s[0] <= r.start && s[1]+slack >= r.start || r.end != 0 && s[0] >= r.start && s[1] <= r.end {
			return true
		}
	}
	for _, w := range ev.windows {
		if kindNamed(w.kind).infra && w.from <= r.start && w.to+int64(session)+slack >= r.start {
			return true
		}
	}
	return false
}

// until is when a run ended; of one whose process died, when that died.
func (ev *evidence) until(r *run) int64 {
	if r.end != 0 {
		return r.end
	}
	if m := ev.members[r.member]; m.ended != 0 {
		return m.ended
	}
	return time.Now().UnixNano()
}

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
				name := fmt.Sprintf("%s/%d", at.topic, at.partition)
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
			ev.overlaps(groups[name], f)
			ev.overtakes(groups[name], f)
		}
	}
}

// overlaps checks that the runs of these deliveries do not overlap.
func (ev *evidence) overlaps(all []*delivered, f *findings) {
	type interval struct {
		*run
		of *delivered
	}
	var runs []interval
	for _, d := range all {
		for _, r := range d.runs {
			runs = append(runs, interval{r, d})
		}
	}
	slices.SortFunc(runs, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	for i, b := range runs[min(1, len(runs)):] {
		a := runs[i]
		if until := ev.until(a.run); until > b.start {
			switch {
			case a.of.of.script.act == actIgnore:
				f.counted["overlap with a handler that ignores its context"]++
			case a.member != b.member && (ev.zombie(a.run) || ev.zombie(b.run)):
				f.counted["overlap with a zombie"]++
			default:
				f.add(b.of.of, b.of.of.origin, []*run{a.run, b.run}, "it ran together with record %d", a.id)
			}
			if until > ev.until(b.run) {
				runs[i+1] = a // it goes on
			}
		}
	}
}

// overtakes checks that first attempts on a source started in the order of the offsets.
func (ev *evidence) overtakes(all []*delivered, f *findings) {
	var source []*delivered
	for _, d := range all {
		if d.copy == nil && len(d.runs) > 0 {
			source = append(source, d)
		}
	}
	slices.SortFunc(source, func(a, b *delivered) int { return cmp.Compare(a.offset, b.offset) })
	for i, b := range source[min(1, len(source)):] {
		if a := source[i]; b.runs[0].start < a.runs[0].start {
			f.add(b.of, b.of.origin, []*run{b.runs[0], a.runs[0]}, "it ran before record %d, which has a lower offset", a.of.id)
		}
	}
}

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
				if wait := m.NotBefore.Sub(m.FailedAt); wait < delays[feed.topic] {
					f.add(d.of, d.copy.rec, d.runs, "it is due %v after its failure, on a tier of %v", wait, delays[feed.topic])
				}
				for _, r := range d.runs {
					// The clock of the host that runs it counts.
					due := m.NotBefore.Add(-ev.members[r.member].job.Skew)
					if r.start < due.UnixNano() {
						f.add(d.of, d.copy.rec, []*run{r}, "it ran %v before it was due", due.Sub(time.Unix(0, r.start)))
					}
				}
			}
		}
	}
}

// attemptsRule: a record has the attempts that its script and the policy give it.
func attemptsRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		for _, r := range s.records {
			if r.own() || r.script.act == actKill {
				continue
			}
			had := map[delivery]bool{}
			lives := 0
			for _, x := range r.runs {
				had[delivery{x.life, x.attempt}] = true
				lives = max(lives, x.life)
			}
			for life := range lives + 1 {
				want := r.script.ending(s.Policy.MaxAttempts, life)
				for n := 1; n <= want.attempts; n++ {
					if !had[delivery{life, n}] {
						f.add(r, r.origin, r.runs, "attempt %d is missing", n)
					}
					delete(had, delivery{life, n})
				}
				for of := range had {
					if of.life == life {
						f.add(r, r.origin, r.runs, "there is an attempt %d, and there should be %d", of.attempt, want.attempts)
					}
				}
				for _, c := range r.letters {
					if c.life() == life && (c.meta.Attempts != want.attempts || string(c.meta.Reason) != want.reason || c.meta.Class != want.class) {
						f.add(r, c.rec, r.runs, "its letter says %d attempts, reason %s, class %s; want %d, %s, %s",
							c.meta.Attempts, c.meta.Reason, c.meta.Class, want.attempts, want.reason, want.class)
					}
				}
			}
		}
	}
}

// headersRule: what a copy's headers say is true, and key, value and the user's headers are as they
// were.
func headersRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		for _, r := range s.records {
			for _, c := range slices.Concat(r.copies, r.letters) {
				if wrong := r.untrue(c, s.Group); len(wrong) > 0 {
					f.add(r, c.rec, r.runs, "its copy is wrong about %s", strings.Join(wrong, ", "))
				}
			}
		}
	}
}

// untrue lists what a copy has wrong.
func (r *record) untrue(c *copied, group string) (wrong []string) {
	if c.err != nil {
		return []string{c.err.Error()}
	}
	check := func(name string, ok bool) {
		if !ok {
			wrong = append(wrong, name)
		}
	}
	o := r.origin
	check("key", bytes.Equal(c.rec.Key, o.Key) && (c.rec.Key == nil) == (o.Key == nil))
	check("value", bytes.Equal(c.rec.Value, o.Value) && (c.rec.Value == nil) == (o.Value == nil))
	user := headers.Strip(slices.Clone(c.rec.Headers))
	check("the user's headers", slices.EqualFunc(user, o.Headers, func(a, b kgo.RecordHeader) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
	}))
	m := c.meta
	if c.sent() {
		return wrong // the rest is about a failure
	}
	at := m.Original
	check("the original position", at.Topic == o.Topic && at.Partition == o.Partition && at.Offset == o.Offset)
	check("the original timestamp", at.Timestamp.UnixMilli() == o.Timestamp.UnixMilli())
	check("the partition", c.rec.Partition == o.Partition)
	check("the group", m.Group == group)
	var ends []int64
	for _, x := range r.runs {
		if x.attempt == m.Attempts && x.life == c.life() && x.end != 0 {
			ends = append(ends, x.end)
		}
	}
	failed := m.FailedAt.UnixMilli()
	check("the time of the failure", slices.ContainsFunc(ends, func(end int64) bool {
		since := failed - end/int64(time.Millisecond)
		return since >= -1 && since < 60_000
	}))
	check("the first failure", !m.FirstFailedAt.After(m.FailedAt))
	if n := len(m.History); n > 0 {
		check("the history", m.History[n-1].Number == m.Attempts && m.History[n-1].Class == m.Class)
	} else {
		check("the history, which is empty", false)
	}
	return wrong
}

// stuck: when the cluster is healthy again, all floors reach the ends, and none stands still for
// settleTime.
func stuck(ev *evidence, f *findings) {
	for at, why := range ev.unsettled {
		f.broken = append(f.broken, Violation{
			Rule: f.rule, Record: -1, Topic: at.topic, Partition: at.partition,
			Text: fmt.Sprintf("it stood still for %v, with a healthy cluster: %s", settleTime, why),
		})
	}
}

// moveTime is how long a floor may stand still in a calm, in which a record waits above it. The
// longest wait in a tier is part of it.
const moveTime = 35 * time.Second

// calms are the times in which nothing was done to anything, and what was done before is over.
func (ev *evidence) calms(from, to int64, least time.Duration) (all [][2]int64) {
	busy := slices.Clone(ev.windows)
	slices.SortFunc(busy, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	for _, w := range busy {
		if w.from-from > int64(least) {
			all = append(all, [2]int64{from, w.from})
		}
		from = max(from, w.to+int64(session+4*time.Second))
	}
	if to-from > int64(least) {
		all = append(all, [2]int64{from, to})
	}
	return all
}

// stalled: in a calm, no floor stands still that has a record above it.
func stalled(ev *evidence, f *findings) {
	if len(ev.samples) == 0 {
		return
	}
	for _, calm := range ev.calms(ev.samples[0].began+int64(20*time.Second), ev.samples[len(ev.samples)-1].ended, moveTime) {
		f.counted["calms"]++
		for _, s := range ev.services {
			since := map[tp]sample{} // the first sample with the floor that it has now
			for _, sample := range ev.samples {
				if sample.group != s.Group || sample.began < calm[0] || sample.ended > calm[1] {
					continue
				}
				for at, end := range sample.ends {
					if s.feeds[at] == nil {
						continue // no handler reads it
					}
					floor := sample.committed[at]
					if before, ok := since[at]; !ok || before.committed[at] != floor || before.ends[at] <= floor {
						since[at] = sample
						continue
					}
					if stood := time.Duration(sample.ended - since[at].ended); end > floor && stood > moveTime {
						f.broken = append(f.broken, Violation{
							Rule: f.rule, Record: -1, Topic: at.topic, Partition: at.partition, Offset: floor,
							Text: fmt.Sprintf("its floor stands still for %v until %s, with a healthy cluster", stood, clockTime(sample.ended)),
						})
						since[at] = sample
					}
				}
			}
		}
	}
}

// commitSlack is how long a commit may take besides the interval, with the acknowledgement of
// copies.
const commitSlack = 3 * time.Second

// prompt: in a calm, what is finished is committed within the interval and commitSlack, or named in
// the commit's metadata as far as that has room. That bounds what a crash repeats.
func prompt(ev *evidence, f *findings) {
	if len(ev.samples) == 0 {
		return
	}
	calms := ev.calms(ev.samples[0].began+int64(12*time.Second), ev.samples[len(ev.samples)-1].ended, 5*time.Second)
	for _, s := range ev.services {
		for at, feed := range s.feeds {
			offsets := slices.Sorted(maps.Keys(feed.at))
			for i := range ev.samples {
				sample := &ev.samples[i]
				if sample.group != s.Group || !slices.ContainsFunc(calms, func(c [2]int64) bool { return sample.began > c[0] && sample.ended < c[1] }) {
					continue
				}
				if offset, ok := feed.forgotten(offsets, sample, sample.began-int64(s.Policy.CommitInterval+commitSlack)); ok {
					d := feed.at[offset]
					f.add(d.of, d.record(), d.runs, "at %s, %d is committed with metadata %q, which does not name it", clockTime(sample.began),
						sample.committed[at], sample.metadata[at])
					break
				}
			}
		}
	}
}

// metadataRoom is the length from which metadata may lack what was finished.
const metadataRoom = 2000

// forgotten returns the first of the offsets that was finished by a time and that a sample's commit
// does not cover.
func (feed *feed) forgotten(offsets []int64, s *sample, by int64) (offset int64, ok bool) {
	if len(s.metadata[feed.tp]) > metadataRoom {
		return 0, false
	}
	floor := s.committed[feed.tp]
	named := finishedAbove(s.metadata[feed.tp], floor)
	n, _ := slices.BinarySearch(offsets, floor)
	for _, offset := range offsets[n:] {
		if feed.at[offset].finishedAt() > by {
			continue
		}
		if _, ok := slices.BinarySearch(named, offset); !ok {
			return offset, true
		}
	}
	return 0, false
}

// finishedAt is when a delivery was finished, or its copy was sent.
func (d *delivered) finishedAt() int64 {
	first := int64(math.MaxInt64)
	for _, r := range d.runs {
		if r.end != 0 && r.verdict != verdictDrained {
			first = min(first, r.end)
		}
	}
	return first
}

// metricsRule: what a member's metrics say is what its journal says.
func metricsRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.metrics)) {
		got := ev.metrics[name]
		counted := map[verdict]int64{}
		calls := int64(0)
		for _, s := range ev.services {
			for _, r := range s.records {
				for _, x := range r.runs {
					if x.member == name && x.end != 0 {
						counted[x.verdict]++
						calls++
					}
				}
			}
		}
		const duration = "messaging.process.duration"
		sum := int64(0)
		for metric, n := range got {
			if strings.HasPrefix(metric, duration) {
				sum += n
			}
		}
		compare := func(what string, metric, journal int64) {
			if metric != journal {
				f.broken = append(f.broken, Violation{
					Rule: f.rule, Record: -1, Topic: name, Partition: -1, Offset: -1,
					Text: fmt.Sprintf("%s: the metrics say %d, the journal %d", what, metric, journal),
				})
			}
		}
		// A run that its lane's loss cut off is no attempt. The loss may also come just after the
		// handler failed.
		if cut := counted[verdictDrained]; sum > calls-cut || sum < calls-2*cut {
			compare("calls of the handler", sum, calls-cut)
		}
		compare("handled", got[duration+" handled"], counted[verdictPassed])
		compare("discarded", got[duration+" discarded"], counted[verdictDiscard])
	}
}

// ledgerRule: the ledger knows of each letter that was redriven, and where its copy is.
func ledgerRule(ev *evidence, f *findings) {
	for _, s := range ev.services {
		sent := map[string]bool{}
		for _, c := range s.redriven {
			f.counted["redriven"]++
			from := c.meta.Redrive.From
			if sent[from.String()] {
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven before", from)
			}
			sent[from.String()] = true
			e, ok := s.entries[tp{from.Topic, from.Partition}][from.Offset]
			switch {
			case !ok:
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger has no entry about it", from)
			case e.Target.Topic != c.rec.Topic || e.Target.Partition != c.rec.Partition || e.Target.Offset != c.rec.Offset:
				f.add(c.of, c.rec, c.of.runs, "the letter %v was redriven, and the ledger says: %s to %v", from, e.State, e.Target)
			}
		}
	}
}

// diedRule: a member ends by itself only if a fault of the brokers took a permission away that Run
// needs at its start, or if a script kills it.
func diedRule(ev *evidence, f *findings) {
	for _, m := range ev.died {
		rights := slices.ContainsFunc(ev.windows, func(w window) bool { return w.kind == "rights" && w.from <= m.ended && w.to >= m.began })
		switch {
		case rights:
			f.counted["ended without a permission"]++
		case ev.poisonIn(m) != nil:
			f.counted["killed by a record"]++
		default:
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: m.job.Name, Partition: -1, Offset: -1,
				Text: fmt.Sprintf("it ended by itself: %v; see %s", m.proc.err, m.job.log()),
			})
		}
	}
}

// endTime is how long Run may take beyond DrainTimeout, and the process a little more.
const endTime = 12 * time.Second

// endedRule: a member that is asked to end does so within DrainTimeout and endTime. While brokers
// fail, it may take longer.
func endedRule(ev *evidence, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(ev.members)) {
		m := ev.members[name]
		took := time.Duration(m.ended - m.termed)
		switch {
		case m.termed == 0 || took <= m.job.Service.Policy.DrainTimeout+endTime:
		case ev.infra(m.termed-int64(session), m.ended):
			f.counted["ended late"]++
		default:
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: name, Partition: -1, Offset: -1,
				Text: fmt.Sprintf("it took %v to end; see %s", took, m.job.log()),
			})
		}
	}
}

// poisonIn returns the record that killed a member, or nil.
func (ev *evidence) poisonIn(m *member) *record {
	for _, s := range ev.services {
		for _, r := range s.records {
			if r.script.act == actKill && slices.ContainsFunc(r.runs, func(x *run) bool { return x.member == m.job.Name && x.end == 0 }) {
				return r
			}
		}
	}
	return nil
}

// crashLimit is the consumer's.
const crashLimit = 3

// crashLoop: the records that kill their process do so at most crashLimit + 1 times for the first
// of a service, and twice for each further one. No other record gets that reason.
func crashLoop(ev *evidence, f *findings) {
	for _, s := range ev.services {
		deaths, poisons := 0, 0
		for _, r := range s.records {
			if r.script.act == actKill {
				poisons++
				deaths += len(r.runs)
			}
			for _, c := range r.letters {
				if string(c.meta.Reason) == reasonCrashLoop && r.script.act != actKill {
					f.add(r, c.rec, r.runs, "it is a letter with reason %s, and kills nothing", reasonCrashLoop)
				}
			}
		}
		if most := crashLimit + 1 + 2*(poisons-1); poisons > 0 && deaths > most {
			f.broken = append(f.broken, Violation{
				Rule: f.rule, Record: -1, Topic: s.Topics[0], Partition: -1, Offset: -1,
				Text: fmt.Sprintf("%d records killed %d processes, at most %d are allowed", poisons, deaths, most),
			})
		}
	}
}
