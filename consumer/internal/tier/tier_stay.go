package tier

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/retrytopics"
)

// A record waits in a tier until it is due. If its topic may have deleted it by then, it is written
// to the tier again before that. How long it has been in the topic is not known: its timestamp is
// the broker's, whose clock may differ from this host's by any amount. So the timestamp can bring
// that copy forward, but two bounds count from the reading, by this host's clock: the copy comes
// neither before the least stay is over nor after the longest.

const (
	// leastShare and mostShare are the parts of a topic's retention that the least and the longest
	// stay take. Half of the retention is left for a group that is stopped. No clock makes more
	// than eight copies of a record within a retention.
	leastShare, mostShare = 8, 2

	// staySlack is added to a tier's delay and jitter: a copy is written a little after its due
	// time was computed.
	staySlack = 2 * time.Second

	// clocksDiffer is how far the clocks of two hosts may differ at the bound of what is believed
	// of a due time.
	clocksDiffer = 12 * time.Hour
)

// fullWait is how long an ordinary failure waits in the tier at most.
func (t *Tier) fullWait() time.Duration { return t.cfg.Wait + staySlack }

// maxStay is how long a record that is not due stays in the tier, by this host's clock since it was
// read here. limited is false if the topic keeps records for ever, and none is written again.
func (t *Tier) maxStay() (least, most time.Duration, limited bool) {
	keeps := t.env.Retention(t.cfg.Topic, t.cfg.Delay)
	full := t.fullWait()
	return max(full, keeps/leastShare), max(full, keeps/mostShare), keeps > 0
}

// longestWait bounds what is believed of a due time, zero for no bound. A retention that is shorter
// than the default may be newer than the record, and a topic keeps the retention it was made with.
func (t *Tier) longestWait() time.Duration {
	keeps := t.cfg.Provision.RetentionOf(t.cfg.Delay)
	if keeps <= 0 {
		return 0
	}
	return max(keeps, retrytopics.Spec{}.RetentionOf(t.cfg.Delay), t.cfg.MaxWait) + clocksDiffer
}

// dueOf is when to hand a record out, in Unix milliseconds: when it is due, or when it has to be
// written again before. read is when it was read here at the latest. A broken record is handed out
// at once. So is one that redrive wrote, which names no due time. Both are due since they were
// written.
// See DESIGN.md, "Never early".
func (t *Tier) dueOf(r *kgo.Record, read, now time.Time) int64 {
	_, due, ok := reserved.Peek(r.Headers)
	atOnce := min(r.Timestamp.UnixMilli(), now.UnixMilli())
	if !ok || due.UnixMilli() == 0 {
		return atOnce
	}
	here := now.Sub(read) // by the monotonic clock, which is never set
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

// markRead notes when the records from an offset on are read. An evicted record is read a second
// time, and stays by the first.
func (t *Tier) markRead(from int64, now time.Time) {
	n := len(t.readMarks)
	if n > 0 && now.Sub(t.readMarks[n-1].at) < t.fullWait()/readSteps {
		return
	}
	// Also of a topic that keeps for ever: it may be given a retention later.
	least, _, _ := t.maxStay()
	if n > 0 && now.Sub(t.readMarks[n-1].at) < least/readSteps {
		return
	}
	t.readMarks = append(t.readMarks, readMark{from, now})
	for len(t.readMarks) > 1 && now.Sub(t.readMarks[1].at) >= least {
		t.readMarks = slices.Delete(t.readMarks, 0, 1) // all that was read before that has stayed
	}
}

// readAt is when a record was read at the latest.
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

// later is the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
