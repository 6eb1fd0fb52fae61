package redrive

// The committed offsets of a group.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// A group's committed offset that moves on shows that records ran, unless an operator set it. A
// broker allows that while the group has no members. A mark identifies the commits of siding's
// consumers. A commit without the mark, of another consumer or an earlier version, counts if a
// member of the group was there before and after it. A commit that was deleted counts on, and the
// next commit is compared with it.
//
// One case cannot be detected: an offset is set, and a consumer starts there and commits before the
// next poll.

// groupOffsets are a group's committed offsets at a time.
type groupOffsets struct {
	members []string
	at      bounds.Positions
	last    bounds.Positions          // at, and earlier offsets whose commits were deleted
	reset   map[string]map[int32]span // skipped by a change that the group did not make
}

// span is a range of a partition whose records may not have run.
type span struct{ from, until int64 }

// next returns the group's offsets after those of the previous poll. The zero value is valid before
// the first poll. next changes g, which must not be used any more.
func (g groupOffsets) next(ids []string, offsets kadm.OffsetResponses) groupOffsets {
	now := groupOffsets{members: ids, at: bounds.Positions{}, last: g.last, reset: g.reset}
	first := g.at == nil
	if first {
		now.last, now.reset = bounds.Positions{}, map[string]map[int32]span{}
	}
	offsets.Each(func(r kadm.OffsetResponse) {
		at, there := r.At, r.At >= 0
		if r.Err != nil { // keep the last known offset
			at, there = g.at[r.Topic][r.Partition]
		}
		if !there {
			return
		}
		if !first && r.Err == nil {
			now.step(g, r)
		}
		now.at.Set(r.Topic, r.Partition, at)
		now.last.Set(r.Topic, r.Partition, at)
	})
	return now
}

// step marks the span between two offsets if the group did not run it.
func (g groupOffsets) step(before groupOffsets, r kadm.OffsetResponse) {
	switch was := before.last[r.Topic][r.Partition]; {
	case r.At < was: // set back: the group may or may not run the span again
		g.mark(r.Topic, r.Partition, span{r.At, was})
	case r.At > was && !g.ran(before, r):
		g.mark(r.Topic, r.Partition, span{was, r.At})
	}
}

// ran reports whether the group itself moved an offset on.
func (g groupOffsets) ran(before groupOffsets, r kadm.OffsetResponse) bool {
	if slices.ContainsFunc(g.members, func(id string) bool { return slices.Contains(before.members, id) }) {
		return true
	}
	_, was := before.last[r.Topic][r.Partition]
	_, is := before.at[r.Topic][r.Partition]
	// a consumer without a committed offset starts at a configured position, which may skip records
	return was == is && commitmark.Marked(r.Metadata)
}

func (g groupOffsets) mark(topic string, partition int32, s span) {
	if g.reset[topic] == nil {
		g.reset[topic] = map[int32]span{}
	}
	if old, ok := g.reset[topic][partition]; ok {
		s = span{min(s.from, old.from), max(s.until, old.until)}
	}
	g.reset[topic][partition] = s
}

func (g groupOffsets) progressOn(at headers.Position, starts bounds.Positions) inflight.Progress {
	if g.at == nil {
		return inflight.Behind
	}
	if s, reset := g.reset[at.Topic][at.Partition]; reset && at.Offset >= s.from && at.Offset < s.until {
		return inflight.Unknown
	}
	// The starts were read after the offsets. The group may have passed an expired copy since,
	// without a record to run.
	switch start, found := starts[at.Topic][at.Partition]; {
	case !found: // the topic is gone, or unknown to a broker so far; neither shows an outcome
		return inflight.Behind
	case start > at.Offset:
		return inflight.Unknown
	}
	if committed, ok := g.at[at.Topic][at.Partition]; ok && committed > at.Offset {
		return inflight.Past
	}
	return inflight.Behind
}
