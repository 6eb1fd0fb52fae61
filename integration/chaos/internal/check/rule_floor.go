package check

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// SettleTime is how long a floor may stand still in a healthy cluster, besides the longest wait in
// tiers.
const SettleTime = 30 * time.Second

// stuck: when the cluster is healthy again, all floors reach the ends, and none stands still for
// SettleTime, or for as long as the run says.
func stuck(ev *evidence, f *findings) {
	for at, why := range ev.unsettled {
		f.report(at.Topic, at.Partition, 0, "it stood still for %v, with a healthy cluster: %s", ev.settles, why)
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
		for _, calm := range ev.calms(s, ev.samples[0].Began+int64(20*time.Second), ev.samples[len(ev.samples)-1].Ended, moveTime, "stuck") {
			f.counted["calms of a service"]++
			since := map[trace.TP]*trace.Sample{} // the first sample with the floor that it has now
			for _, sample := range ev.samplesOf(s.Group) {
				if sample.Began < calm[0] || sample.Ended > calm[1] {
					continue
				}
				for at, end := range sample.Ends {
					if s.feeds[at] == nil {
						continue // no handler reads it
					}
					floor := sample.Committed[at]
					if before, ok := since[at]; !ok || before.Committed[at] != floor || before.Ends[at] <= floor {
						since[at] = sample
						continue
					}
					stood := time.Duration(sample.Ended - since[at].Ended)
					switch {
					case end <= floor || stood <= moveTime:
						continue
					case stood-trace.Overlap(outlasting, since[at].Ended, sample.Ended) <= moveTime:
						f.excluded["a floor stood still, while suspects outlasted their timeouts"]++
						continue
					}
					f.report(at.Topic, at.Partition, floor, "its floor stands still for %v until %s, with a healthy cluster", stood, trace.ClockTime(sample.Ended))
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
		calms := ev.calms(s, ev.samples[0].Began+int64(12*time.Second), ev.samples[len(ev.samples)-1].Ended, 5*time.Second, "stuck")
		for at, feed := range s.feeds {
			times := timesOf(ev, feed)
			for _, sample := range ev.samplesOf(s.Group) {
				if !slices.ContainsFunc(calms, func(c [2]int64) bool { return sample.Began > c[0] && sample.Ended < c[1] }) {
					continue
				}
				if offset, ok := times.forgotten(sample, sample.Began-int64(s.Policy.CommitInterval+commitSlack)); ok {
					d := feed.at[offset]
					f.add(d.of, d.record(), d.runs, "at %s, %d is committed with metadata %q, which does not name it", trace.ClockTime(sample.Began),
						sample.Committed[at], sample.Metadata[at])
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
	trace.TP
	offsets  []int64
	finished []int64 // by index of offsets; see finishedAt
	least    []int64 // of finished, from an index on
}

func timesOf(ev *evidence, f *feed) times {
	t := times{TP: f.TP, offsets: slices.Sorted(maps.Keys(f.at))}
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
func (t times) forgotten(s *trace.Sample, by int64) (offset int64, ok bool) {
	if len(s.Metadata[t.TP]) > metadataRoom {
		return 0, false
	}
	floor := s.Committed[t.TP]
	named := trace.FinishedAbove(s.Metadata[t.TP], floor)
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
	if last.End == 0 || last.Verdict == trace.VerdictDrained || last.Verdict.Down() {
		return math.MaxInt64
	}
	committed := last.End + int64(ev.members[last.Member].Job.Service.Policy.CommitInterval+commitSlack)
	ended := slices.ContainsFunc(ev.journals[last.Member].Changes(last.Lane, last.Start, committed), func(c trace.LaneChange) bool { return c.What != trace.LaneHandedOver })
	if m := ev.members[last.Member]; ended || m.Ended != 0 && m.Ended < committed {
		return math.MaxInt64
	}
	at := last.End
	if last.Verdict == trace.VerdictPassed || last.Verdict == trace.VerdictDiscard {
		return at
	}
	for _, w := range ev.windows {
		if w.Parts && w.From <= committed {
			at = max(at, w.To+unanswered)
		}
	}
	return at
}
