package tier

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/retrytopics"
)

// A record waits in a tier until it is due. If its topic may have deleted it by then, it is written
// to the tier again before that. How long it has been in the topic is not known: its timestamp is
// by the broker's clock, which may differ from this host's by any amount. So the timestamp can only
// bring the copy forward, within two bounds that count by this host's clock from the time of
// reading. The copy is not written before the least stay is over, nor after the longest.

const (
	// leastShare and mostShare are the parts of a topic's retention that the least and the longest
	// stay take. Half of the retention is left for a group that is stopped. No clock makes more
	// than eight copies of a record within a retention.
	leastShare, mostShare = 8, 2

	// staySlack is added to a tier's delay and jitter, because a copy is written a little after its
	// due time was computed.
	staySlack = 2 * time.Second

	// clocksDiffer is how far the clocks of two hosts may differ before a due time looks made up.
	clocksDiffer = 12 * time.Hour
)

// fullWait returns the longest that an ordinary failure waits in the tier.
func (t *Tier) fullWait() time.Duration { return min(t.cfg.Wait, math.MaxInt64-staySlack) + staySlack }

// maxStay returns the least and the longest time that a record stays in the tier before it is
// written again, by this host's clock since it was read here. limited is false if the topic keeps
// records for ever: then none is written again.
func (t *Tier) maxStay() (least, most time.Duration, limited bool) {
	keeps := t.env.Retention(t.cfg.Topic, t.cfg.Delay)
	full := t.fullWait()
	return max(full, keeps/leastShare), max(full, keeps/mostShare), keeps > 0
}

// longestWait returns how long after its writing a record may be due; zero means no bound. A later
// due time is taken for made up. The bound is never below the default retention: a shorter one may
// be newer than the record, and a topic keeps the retention that it was created with.
func (t *Tier) longestWait() time.Duration {
	keeps := t.cfg.Provision.RetentionOf(t.cfg.Delay)
	if keeps <= 0 {
		return 0
	}
	return min(max(keeps, retrytopics.Spec{}.RetentionOf(t.cfg.Delay), t.cfg.MaxWait), math.MaxInt64-clocksDiffer) + clocksDiffer
}

// dueOf returns when to hand a record out, in Unix milliseconds: when it is due, or earlier if it
// has to be written again before. read is the latest time at which it may have been read here. A
// broken record is handed out at once, and so is a record of redrive, which names no due time. Both
// are due since they were written.
// See DESIGN.md, "Never early".
func (t *Tier) dueOf(r *kgo.Record, read, now time.Time) int64 {
	_, due, ok := reserved.Peek(r.Headers)
	atOnce := min(r.Timestamp.UnixMilli(), now.UnixMilli())
	if !ok || due.UnixMilli() == 0 {
		return atOnce
	}
	here := now.Sub(read) // by the monotonic clock, which no one sets
	if !due.After(now.Add(t.fullWait() - here)) {
		return due.UnixMilli()
	}
	if bound := t.longestWait(); bound > 0 && due.After(later(r.Timestamp, now).Add(bound)) {
		return atOnce
	}
	least, most, limited := t.maxStay()
	if !limited {
		return due.UnixMilli()
	}
	written := now.Add(-here) // the latest time at which it may have been written
	if r.Timestamp.Before(written) {
		written = r.Timestamp
	}
	return min(due.UnixMilli(), later(written.Add(most), now.Add(least-here)).UnixMilli())
}

// readMark registers that the records from an offset on were read at a time or later.
type readMark struct {
	from int64
	at   time.Time
}

// readSteps is how many marks a least stay is divided into.
const readSteps = 8

// markRead registers when the records from an offset on are read. An evicted record is read again,
// but its stay counts from the first reading.
func (t *Tier) markRead(from int64, now time.Time) {
	n := len(t.readMarks)
	if n > 0 && now.Sub(t.readMarks[n-1].at) < t.fullWait()/readSteps {
		return
	}
	// A topic that keeps records for ever needs marks too: it may be given a retention later.
	least, _, _ := t.maxStay()
	if n > 0 && now.Sub(t.readMarks[n-1].at) < least/readSteps {
		return
	}
	t.readMarks = append(t.readMarks, readMark{from, now})
	for len(t.readMarks) > 1 && now.Sub(t.readMarks[1].at) >= least {
		// records read before the second mark have stayed long enough
		t.readMarks = slices.Delete(t.readMarks, 0, 1)
	}
}

// readAt returns the latest time at which a record may have been read.
func (t *Tier) readAt(offset int64, now time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(t.readMarks, offset+1, func(m readMark, from int64) int { return cmp.Compare(m.from, from) })
	at := now
	if i < len(t.readMarks) {
		at = t.readMarks[i].at
	}
	if i > 0 {
		least, _, _ := t.maxStay()
		if step := t.readMarks[i-1].at.Add(least / readSteps); step.Before(at) {
			at = step
		}
	}
	return at
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
