package redrive

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// A group's offset that moved on says that records ran, unless somebody set it, which a broker
// allows while the group has no members. A consumer's commit is known by its mark. One without it,
// of another consumer or a former version, is believed where a member of the group was there before
// and after it. What was committed and is gone counts as it was: whatever is committed next is a
// step from there.
//
// What cannot be told: an offset that is set, and a consumer that begins there and commits before
// the next look.

// groupOffsets are what a group had committed at a time.
type groupOffsets struct {
	members []string
	at      bounds.Positions
	last    bounds.Positions          // as at, with what was committed before and is not any more
	reset   map[string]map[int32]span // moved by something else than the group's members
}

// span is a range of a partition whose records may not have run.
type span struct{ from, until int64 }

// next is what a group has committed, after what it had at the poll before; nil before the first.
func (g *groupOffsets) next(ids []string, offsets kadm.OffsetResponses) *groupOffsets {
	now := &groupOffsets{members: ids, at: bounds.Positions{}, last: bounds.Positions{}, reset: map[string]map[int32]span{}}
	if g != nil {
		now.reset = g.reset
		for topic, partitions := range g.last {
			for p, at := range partitions {
				now.last.Set(topic, p, at)
			}
		}
	}
	offsets.Each(func(r kadm.OffsetResponse) {
		at, there := r.At, r.At >= 0
		if r.Err != nil { // it is what it was, for all that is known
			at, there = g.committed(r.Topic, r.Partition)
		}
		if !there {
			return
		}
		if g != nil && r.Err == nil {
			now.step(g, r)
		}
		now.at.Set(r.Topic, r.Partition, at)
		now.last.Set(r.Topic, r.Partition, at)
	})
	return now
}

// step marks what an offset moved over without that anybody ran it.
func (g *groupOffsets) step(before *groupOffsets, r kadm.OffsetResponse) {
	switch was := before.last[r.Topic][r.Partition]; {
	case r.At < was: // back: what lies between runs again, or will not
		g.mark(r.Topic, r.Partition, span{r.At, was})
	case r.At > was && !g.ran(before, r):
		g.mark(r.Topic, r.Partition, span{was, r.At})
	}
}

// ran reports whether it was the group that moved an offset on.
func (g *groupOffsets) ran(before *groupOffsets, r kadm.OffsetResponse) bool {
	if slices.ContainsFunc(g.members, func(id string) bool { return slices.Contains(before.members, id) }) {
		return true
	}
	_, was := before.last[r.Topic][r.Partition]
	_, is := before.at[r.Topic][r.Partition]
	// who finds none begins where it is configured to
	return was == is && commitmark.Marked(r.Metadata)
}

// committed is the committed offset of a group on a partition.
func (g *groupOffsets) committed(topic string, partition int32) (at int64, ok bool) {
	if g == nil {
		return 0, false
	}
	at, ok = g.at[topic][partition]
	return at, ok
}

func (g *groupOffsets) mark(topic string, partition int32, s span) {
	if g.reset[topic] == nil {
		g.reset[topic] = map[int32]span{}
	}
	if old, ok := g.reset[topic][partition]; ok {
		s = span{min(s.from, old.from), max(s.until, old.until)}
	}
	g.reset[topic][partition] = s
}

func (g *groupOffsets) progressOn(at headers.Position, starts kadm.ListedOffsets) inflight.Progress {
	if g == nil {
		return inflight.Behind
	}
	if s, reset := g.reset[at.Topic][at.Partition]; reset && at.Offset >= s.from && at.Offset < s.until {
		return inflight.Unknown
	}
	// The starts were read after the offsets. One that expired by then may have been passed since
	// there was nothing left to run.
	switch start, found := starts.Lookup(at.Topic, at.Partition); {
	case !found: // the topic is gone, or a broker does not know it yet: nothing can be concluded
		return inflight.Behind
	case start.Offset > at.Offset:
		return inflight.Unknown
	}
	if committed, ok := g.at[at.Topic][at.Partition]; ok && committed > at.Offset {
		return inflight.Past
	}
	return inflight.Behind
}
