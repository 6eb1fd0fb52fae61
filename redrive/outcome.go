package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/headers"
)

// outcomes finds out what became of letters. The order of its readings is the point: first the groups' committed offsets, stable; then
// where the topics end that tell of failures; then the watch reads up to there. A group commits past a record when it was processed, or
// when the copy that tells of its failure is written: so of a letter that the offsets are past, a copy would have been read.
type outcomes struct {
	watch  *watch
	held   *held
	topics *topics
	groups []string
	named  string // the target, where it is not the groups' tiers
	last   map[string]*groupOffsets

	absence absence // of the dead-letter topic
}

func (h *held) outcomes(w *watch) *outcomes {
	o := &outcomes{watch: w, held: h, topics: h.topics, groups: h.rec.Groups, last: map[string]*groupOffsets{}}
	if !h.rec.toTier() {
		o.named = h.rec.Target.Topic
	}
	return o
}

// groupOffsets are what a group had committed at a time.
type groupOffsets struct {
	members int
	at      positions
	reset   map[string]map[int32]span // moved by something else than the group's members
}

// span is a part of a partition whose records nobody knows to have run.
type span struct{ from, until int64 }

// look settles what can be settled.
func (o *outcomes) look(ctx context.Context) (l look) {
	l.verdicts, l.err = o.verdicts(ctx)
	if l.err != nil {
		return l
	}
	for _, g := range o.groups {
		if o.last[g].members == 0 {
			l.idle = append(l.idle, g)
		}
	}
	if o.named != "" {
		l.lag, l.err = o.behind(ctx)
	}
	return l
}

// behind is the groups' lag on the target that was named.
func (o *outcomes) behind(ctx context.Context) (lag int64, err error) {
	to, err := ends(ctx, o.watch.adm, []string{o.named})
	if err != nil {
		return 0, err
	}
	for _, g := range o.groups {
		n := int64(0)
		for p, end := range to[o.named] {
			if at, ok := o.last[g].at[o.named][p]; ok {
				n += max(end-at, 0)
			}
		}
		lag = max(lag, n)
	}
	return lag, nil
}

func (o *outcomes) verdicts(ctx context.Context) ([]verdict, error) {
	// (1)
	for _, g := range o.groups {
		if err := o.fetch(ctx, g); err != nil {
			return nil, err
		}
	}
	// (2) Topics that were made since are watched from their start.
	found, err := o.topics.watched(ctx, o.watch.adm, o.groups)
	if err != nil {
		return nil, err
	}
	if err := o.held.same(found); err != nil {
		return nil, err
	}
	if err := o.there(ctx, found); err != nil {
		return nil, err
	}
	o.watch.anew(found)
	to, err := ends(ctx, o.watch.adm, found.Names())
	if err != nil {
		return nil, err
	}
	o.watch.adopt(to)
	from, err := starts(ctx, o.watch.adm, o.targets(found))
	if err != nil {
		return nil, err
	}
	// (3)
	if err := o.watch.reach(ctx, to); err != nil {
		return nil, err
	}
	return o.watch.flights.settle(func(group string, at headers.Position) standing { return o.standing(group, at, from) }), nil
}

// targets are the topics on which letters are in flight.
func (o *outcomes) targets(found kadm.TopicDetails) []string {
	names := map[string]bool{}
	for name := range found {
		names[name] = true
	}
	for _, name := range o.watch.flights.topics() {
		names[name] = true
	}
	return slices.Collect(maps.Keys(names))
}

// fetch reads what a group has committed.
func (o *outcomes) fetch(ctx context.Context, group string) error {
	n, err := members(ctx, o.watch.adm, group)
	if err != nil {
		return err
	}
	offsets, err := o.watch.adm.FetchOffsets(kadm.RequireStable(ctx), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("fetch offsets of group %q: %w", group, err)
	}
	before := o.last[group]
	now := &groupOffsets{members: n, at: positions{}, reset: map[string]map[int32]span{}}
	if before != nil {
		now.reset = before.reset
	}
	offsets.Each(func(r kadm.OffsetResponse) {
		if r.Err != nil || r.At < 0 {
			return
		}
		now.at.set(r.Topic, r.Partition, r.At)
		if before == nil {
			return
		}
		was, known := before.at[r.Topic][r.Partition]
		switch {
		case !known:
		case r.At < was: // back: what lies between runs again, or will not
			now.mark(r.Topic, r.Partition, span{r.At, was})
		case r.At > was && n == 0 && before.members == 0: // nobody ran what lies between
			now.mark(r.Topic, r.Partition, span{was, r.At})
		}
	})
	o.last[group] = now
	return nil
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

// standing is where a group stands; all groups of the run where it is not known whose the letter is.
func (o *outcomes) standing(group string, at headers.Position, starts kadm.ListedOffsets) standing {
	groups := []string{group}
	if group == "" {
		groups = o.groups
	}
	worst := standsPast
	for _, g := range groups {
		switch o.last[g].standing(at, starts) {
		case standsBehind:
			return standsBehind
		case standsUnknown:
			worst = standsUnknown
		}
	}
	if worst == standsPast && (len(groups) == 0 || o.watch.missed(at.Partition)) {
		return standsUnknown
	}
	return worst
}

func (g *groupOffsets) standing(at headers.Position, starts kadm.ListedOffsets) standing {
	if g == nil {
		return standsBehind
	}
	if s, reset := g.reset[at.Topic][at.Partition]; reset && at.Offset >= s.from && at.Offset < s.until {
		return standsUnknown
	}
	// The starts were read after the offsets. One that expired by then may have been passed since there was nothing left to run.
	switch start, found := starts.Lookup(at.Topic, at.Partition); {
	case !found: // the topic is gone, or a broker does not know it yet: nothing can be concluded
		return standsBehind
	case start.Offset > at.Offset:
		return standsUnknown
	}
	if committed, ok := g.at[at.Topic][at.Partition]; ok && committed > at.Offset {
		return standsPast
	}
	return standsBehind
}
