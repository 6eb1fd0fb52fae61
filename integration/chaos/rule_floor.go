package chaos

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// stuck: when the cluster is healthy again, all floors reach the ends, and none stands still for
// settleTime.
func stuck(ev *evidence, f *findings) {
	for at, why := range ev.unsettled {
		f.note(at.topic, at.partition, 0, "it stood still for %v, with a healthy cluster: %s", settleTime, why)
	}
}

// moveTime is how long a floor may stand still in a calm, in which a record waits above it. The
// longest wait in a tier is part of it.
const moveTime = 35 * time.Second

// calms are the times in which nothing but some faults was done to anything, and what was done
// before is over. No member of the service was killed by a record then.
func (ev *evidence) calms(s *served, from, to int64, least time.Duration, but ...string) (all [][2]int64) {
	var busy []window
	for _, w := range ev.windows {
		if slices.Contains(but, w.kind) {
			continue
		}
		if w.down {
			w.to += int64(ev.recovers)
		}
		busy = append(busy, w)
	}
	for _, m := range ev.died {
		if m.job.Service.Group == s.Group {
			busy = append(busy, window{kind: "died", from: m.ended, to: m.ended})
		}
	}
	slices.SortFunc(busy, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	for _, w := range busy {
		if w.from-from > int64(least) {
			all = append(all, [2]int64{from, w.from})
		}
		from = max(from, w.to+int64(s.Policy.Session+4*time.Second))
	}
	if to-from > int64(least) {
		all = append(all, [2]int64{from, to})
	}
	return all
}

// outlasting returns the times in which a service's members ran suspects that outlast their
// timeouts, in order. Nothing else of such a process runs meanwhile, if they run one by one.
func (ev *evidence) outlasting(s *served) (all [][2]int64) {
	var runs [][2]int64
	for _, name := range ev.membersOf(s.Group) {
		is := ev.told[name]
		for _, r := range is.runs {
			if until := ev.until(r); until-r.start >= int64(s.Policy.HandlerTimeout) && is.suspected(r) {
				runs = append(runs, [2]int64{r.start, until})
			}
		}
	}
	slices.SortFunc(runs, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	for _, r := range runs {
		if n := len(all); n > 0 && r[0] <= all[n-1][1] {
			all[n-1][1] = max(all[n-1][1], r[1])
		} else {
			all = append(all, r)
		}
	}
	return all
}

// stalled: in a calm, no floor stands still that has a record above it.
func stalled(ev *evidence, f *findings) {
	if len(ev.samples) == 0 {
		return
	}
	for _, s := range ev.services {
		outlasting := ev.outlasting(s)
		// Beside a stuck handler the others go on. It takes less than a floor may stand still.
		for _, calm := range ev.calms(s, ev.samples[0].began+int64(20*time.Second), ev.samples[len(ev.samples)-1].ended, moveTime, "stuck") {
			f.counted["calms of a service"]++
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
					stood := time.Duration(sample.ended - since[at].ended)
					switch {
					case end <= floor || stood <= moveTime:
						continue
					case stood-overlap(outlasting, since[at].ended, sample.ended) <= moveTime:
						f.excluded["a floor stood still, while suspects outlasted their timeouts"]++
						continue
					}
					f.note(at.topic, at.partition, floor, "its floor stands still for %v until %s, with a healthy cluster", stood, clockTime(sample.ended))
					since[at] = sample
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
	for _, s := range ev.services {
		calms := ev.calms(s, ev.samples[0].began+int64(12*time.Second), ev.samples[len(ev.samples)-1].ended, 5*time.Second, "stuck")
		for at, feed := range s.feeds {
			times := ev.timesOf(feed)
			for i := range ev.samples {
				sample := &ev.samples[i]
				if sample.group != s.Group || !slices.ContainsFunc(calms, func(c [2]int64) bool { return sample.began > c[0] && sample.ended < c[1] }) {
					continue
				}
				if offset, ok := times.forgotten(sample, sample.began-int64(s.Policy.CommitInterval+commitSlack)); ok {
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

// times are when the deliveries of a feed were finished.
type times struct {
	tp
	offsets  []int64
	finished []int64 // by index of offsets; see finishedAt
	least    []int64 // of finished, from an index on
}

func (ev *evidence) timesOf(f *feed) times {
	t := times{tp: f.tp, offsets: slices.Sorted(maps.Keys(f.at))}
	for _, offset := range t.offsets {
		t.finished = append(t.finished, ev.finishedAt(f.at[offset]))
	}
	t.least = slices.Clone(t.finished)
	for i := len(t.least) - 2; i >= 0; i-- {
		t.least[i] = min(t.least[i], t.least[i+1])
	}
	return t
}

// forgotten returns the first offset that was finished by a time and that a sample's commit does
// not cover. It looks at the deliveries up to the last one that was finished by then: a run has
// many samples, and most of its deliveries come later.
func (t times) forgotten(s *sample, by int64) (offset int64, ok bool) {
	if len(s.metadata[t.tp]) > metadataRoom {
		return 0, false
	}
	floor := s.committed[t.tp]
	named := finishedAbove(s.metadata[t.tp], floor)
	for i, _ := slices.BinarySearch(t.offsets, floor); i < len(t.offsets) && t.least[i] <= by; i++ {
		if t.finished[i] > by {
			continue
		}
		if _, ok := slices.BinarySearch(named, t.offsets[i]); !ok {
			return t.offsets[i], true
		}
	}
	return 0, false
}

// unanswered is how long a client waits for the answer to a produce request: the 10 s that the
// broker may take, and 10 s more (kgo.ProduceRequestTimeout and kgo.RequestTimeoutOverhead). A
// partition waits for it even if it has another leader by then.
const unanswered = int64(20 * time.Second)

// finishedAt is when a delivery was finished by its last run, or when the copy was safe at the
// latest: a request that was sent while brokers failed may get no answer. What was finished before,
// or shortly before its lane ended, may have been lost with the lane.
func (ev *evidence) finishedAt(d *delivered) int64 {
	if len(d.runs) == 0 {
		return math.MaxInt64
	}
	last := d.runs[len(d.runs)-1]
	if last.end == 0 || last.verdict == verdictDrained || last.verdict.down() {
		return math.MaxInt64
	}
	committed := last.end + int64(ev.members[last.member].job.Service.Policy.CommitInterval+commitSlack)
	ended := slices.ContainsFunc(ev.told[last.member].changes(last.lane, last.start, committed), func(c laneChange) bool { return c.what != laneHandedOver })
	if m := ev.members[last.member]; ended || m.ended != 0 && m.ended < committed {
		return math.MaxInt64
	}
	at := last.end
	if last.verdict == verdictPassed || last.verdict == verdictDiscard {
		return at
	}
	for _, w := range ev.windows {
		if w.parts && w.from <= committed {
			at = max(at, w.to+unanswered)
		}
	}
	return at
}
