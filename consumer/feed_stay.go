package consumer

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// A record in a tier waits there until it is due. One that is due only after the topic may have forgotten it is written to the
// tier again before that. Nobody knows for how long it has been in the topic: its timestamp is the broker's, whose clock may differ
// from the own one by any amount. So the timestamp can bring that copy forward, but two bounds count from the reading, by the own
// clock: the copy comes neither before the least stay is over nor after the longest.

const (
	// leastShare and mostShare are the parts of a topic's retention that the least and the longest stay take. Half of the retention is
	// left for a group that is away; no clock makes more than eight copies of a record within a retention.
	leastShare, mostShare = 8, 2

	// staySlack is added to a tier's delay and jitter: a copy is written a little after its due time was reckoned.
	staySlack = 2 * time.Second

	// clocksDiffer is how far the clocks of two hosts may lie apart at the bound of what is believed of a due time.
	clocksDiffer = 12 * time.Hour
)

// fullWait is how long an ordinary failure waits in the tier at most.
func (f *feed) fullWait() time.Duration { return f.lane.policy.jittered(f.delay) + staySlack }

// maxStay is how long a record that is not due stays in the tier, by the own clock since it was read here. It reports false where the
// topic keeps records for ever, and none is written again.
func (f *feed) maxStay() (least, most time.Duration, limited bool) {
	keeps := f.lane.c.retentionOf(f.topic, f.delay)
	full := f.fullWait()
	return max(full, keeps/leastShare), max(full, keeps/mostShare), keeps > 0
}

// longestWait bounds what is believed of a due time, zero for no bound. A retention that is shorter than the default may be newer
// than the record, and a topic keeps the retention that it was made with.
func (f *feed) longestWait() time.Duration {
	p := f.lane.c.cfg.Provision
	keeps := p.RetentionOf(f.delay)
	if keeps <= 0 {
		return 0
	}
	return max(keeps, retrytopics.Spec{}.RetentionOf(f.delay), f.lane.policy.jittered(f.lane.policy.MaxRetryAfter)) + clocksDiffer
}

// dueOf is when to look at a record of a tier, in Unix milliseconds: when it is due, or when it has to be written again before. read
// is when it was read here at the latest. A record that is broken is looked at at once. So is one that
// redrive wrote, which names no due time: both are due since they were written.
// See DESIGN.md, "Never early".
func (f *feed) dueOf(r *kgo.Record, read, now time.Time) int64 {
	_, due, ok := headers.Peek(r.Headers)
	atOnce := min(r.Timestamp.UnixMilli(), now.UnixMilli())
	if !ok || due.UnixMilli() == 0 {
		return atOnce
	}
	here := now.Sub(read) // by the monotonic clock, which nobody sets
	if !due.After(now.Add(f.fullWait() - here)) {
		return due.UnixMilli()
	}
	if bound := f.longestWait(); bound > 0 && due.After(later(r.Timestamp, now).Add(bound)) {
		return atOnce
	}
	least, most, limited := f.maxStay()
	if !limited {
		return due.UnixMilli()
	}
	written := now.Add(-here) // at the latest
	if r.Timestamp.Before(written) {
		written = r.Timestamp
	}
	return min(due.UnixMilli(), later(written.Add(most), now.Add(least-here)).UnixMilli())
}

// readMark says that the records from an offset on were read at a time or later.
type readMark struct {
	from int64
	at   time.Time
}

// readSteps is how many marks a least stay is divided into.
const readSteps = 8

// markRead notes when the records from an offset on are read; the caller holds the lock. What gave up its bytes is read a second time,
// and stays by the first.
func (f *feed) markRead(from int64, now time.Time) {
	n := len(f.readMarks)
	if n > 0 && now.Sub(f.readMarks[n-1].at) < f.fullWait()/readSteps {
		return
	}
	least, _, _ := f.maxStay() // of a topic that keeps for ever too, which may be given a retention later
	if n > 0 && now.Sub(f.readMarks[n-1].at) < least/readSteps {
		return
	}
	f.readMarks = append(f.readMarks, readMark{from, now})
	for len(f.readMarks) > 1 && now.Sub(f.readMarks[1].at) >= least {
		f.readMarks = slices.Delete(f.readMarks, 0, 1) // whatever was read before that has stayed
	}
}

// readAt is when a record was read at the latest; the caller holds the lock.
func (f *feed) readAt(offset int64, now time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(f.readMarks, offset+1, func(m readMark, from int64) int { return cmp.Compare(m.from, from) })
	at := now
	if i < len(f.readMarks) {
		at = f.readMarks[i].at
	}
	if i > 0 {
		least, _, _ := f.maxStay()
		if step := f.readMarks[i-1].at.Add(least / readSteps); step.Before(at) {
			at = step
		}
	}
	return at
}

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
