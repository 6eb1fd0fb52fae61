package chaos

import (
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
			times := timesOf(ev, feed)
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

func timesOf(ev *evidence, f *feed) times {
	t := times{tp: f.tp, offsets: slices.Sorted(maps.Keys(f.at))}
	for _, offset := range t.offsets {
		t.finished = append(t.finished, finishedAt(ev, f.at[offset]))
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
func finishedAt(ev *evidence, d *delivered) int64 {
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
