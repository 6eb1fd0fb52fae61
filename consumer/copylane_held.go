package consumer

import (
	"slices"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// ending returns the origin of a copy with which a record ends: under HoldKeys its key waits for
// that. dead is what a dead letter says.
func (l copyLane) ending(f *feed, seen *copySource, dead *headers.Meta) forward.Origin {
	e := seen.end
	if e == nil {
		return f
	}
	if dead != nil && l.c.cfg.Followers == FollowHead {
		e.follow = &headers.Meta{Class: dead.Class, Fingerprint: dead.Fingerprint}
	}
	e.claim()
	return e
}

// holdKey has the record of an attempt wait in its lane, in front of its key. It is no copy.
func (l copyLane) holdKey(seen *copySource, m *headers.Meta, d decision) {
	kept := *m
	kept.History = slices.Clone(m.History)
	kept.Hops--
	seen.end.waits = &heldRecord{meta: &kept, tier: d.tier}
	if len(l.c.hooks.parked) == 0 {
		return
	}
	e := Routed{Record: recordAt(m.Original, seen.Key, seen.Value, seen.Headers), Meta: kept, Tier: d.tier.Delay}
	for _, hook := range l.c.hooks.parked {
		l.c.hooks.call("OnParked", func() { hook.OnParked(e) })
	}
}
