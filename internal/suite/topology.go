package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// topology: tiers, topics and groups that change while records are in flight.
var topology = map[string]func(*testing.T, *fixture){
	"a recreated source is read from its start": func(t *testing.T, f *fixture) {
		cfg := f.config(busyOnce)
		c := f.Run(cfg)
		f.handledOnce(f.Produce(f.many(50)...))
		for range 2 {
			f.DeleteTopic(f.topic)
			f.CreateTopic(f.topic, 3)
			f.handledOnce(f.Produce(f.many(50)...))
			f.Conserved()
		}
		if h := c.Health(); !h.OK {
			t.Errorf("health is %+v", h)
		}
	},
	"a recreated retry topic is read from its start": func(t *testing.T, f *fixture) {
		c := f.Run(f.config(busyOnce))
		f.handledOnce(f.Produce(f.many(50)...))
		f.Conserved()
		tier := f.tierTopic(tier1)
		f.DeleteTopic(tier)
		f.CreateTopic(tier, 2)
		f.Produce(f.many(50)...)
		f.Conserved() // a copy may exist twice
		eventually(t, "all of it is committed", func() bool {
			return !slices.ContainsFunc(c.Health().Lanes, func(l consumer.LaneHealth) bool {
				return slices.ContainsFunc(l.Offsets, func(o consumer.FeedOffsets) bool { return o.Committed != o.Next || o.Pending > 0 })
			})
		})
		f.handledOnce(f.Produce(f.many(50)...))
		f.Conserved()
	},
	"a source that is deleted holds up no other, and is consumed when it is there again": func(t *testing.T, f *fixture) {
		other := f.topic + "-other"
		f.CreateTopic(other, 2)
		cfg := f.config(busyOnce)
		cfg.Topics = []string{f.topic, other}
		c := f.Run(cfg)
		f.handledOnce(f.Produce(f.many(20)...))
		f.DeleteTopic(f.topic)
		for i := range 20 {
			f.handledOnce(f.Produce(&kgo.Record{Topic: other, Key: fmt.Append(nil, i)}))
		}
		eventually(t, "health says what is missing", func() bool { h := c.Health(); return !h.OK && slices.Equal(h.Missing, []string{f.topic}) })
		f.handledOnce(f.Produce(&kgo.Record{Topic: other, Key: []byte("x")}))
		f.CreateTopic(f.topic, 2)
		f.handledOnce(f.Produce(f.many(50)...))
		f.handledOnce(f.Produce(&kgo.Record{Topic: other, Key: []byte("x")}))
		eventually(t, "health is OK", func() bool { return c.Health().OK })
		f.Conserved()
	},
	"a tier that left the configuration is drained, and may be deleted": func(t *testing.T, f *fixture) {
		const removed = 8 * time.Second
		cfg := f.config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{removed}
		first := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		for _, r := range records {
			f.Parked(r, removed, "")
		}
		f.Conserved()
		stop(t, first)
		cfg.Policy.Tiers = []time.Duration{tier1}
		c := f.Run(cfg)
		f.handledOnce(records)
		f.handledOnce(f.Produce(f.many(20)...))
		f.Conserved()
		gone := f.tierTopic(removed)
		f.DeleteTopic(gone)
		f.handledOnce(f.Produce(f.many(20)...))
		eventually(t, "the lanes have let go of it", func() bool {
			return !slices.ContainsFunc(c.Health().Lanes, func(l consumer.LaneHealth) bool {
				return slices.ContainsFunc(l.Offsets, func(o consumer.FeedOffsets) bool { return o.Topic == gone })
			})
		})
		f.handledOnce(f.Produce(f.many(20)...))
		f.Conserved()
	},
	"a group that was renamed goes on where it was": func(t *testing.T, f *fixture) {
		const tier = 5 * time.Second
		var keys sync.Map // by the position where a record was first read
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
			if first, _ := keys.LoadOrStore(facts.Original.String(), facts.IdempotencyKey()); first != facts.IdempotencyKey() {
				t.Errorf("attempt %d has the idempotency key %s, the first had %s", facts.Attempt, facts.IdempotencyKey(), first)
			}
			return busyOnce(ctx, r)
		})
		cfg.Policy.Tiers = []time.Duration{tier}
		former := f.Run(cfg)
		parked := f.Produce(f.many(20)...)
		for _, r := range parked {
			f.Parked(r, tier, "")
		}
		f.Conserved()
		stop(t, former)
		cfg.FormerGroups, cfg.Group = []string{cfg.Group}, cfg.Group+"-anew"
		f.Run(cfg)
		f.handledOnce(append(parked, f.Produce(f.many(20)...)...))
		f.Conserved()
	},
	"a group whose offsets are gone loses nothing": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{tier1, time.Hour}
		c := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		for _, r := range records {
			f.Parked(r, time.Hour, "")
		}
		f.Conserved()
		stop(t, c)
		f.deleteGroup(t, cfg.Group)
		// The records on the source and in the tiers run again; a record that is not due stays.
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			if facts := consumer.DeliveryOf(ctx, r); facts.Tier == time.Hour {
				t.Errorf("attempt %d of %d runs an hour early", facts.Attempt, r.Offset)
			}
			return nil
		}
		f.Run(cfg)
		for _, r := range records {
			f.Handled(r, 2) // read from the source, and from the first tier
			f.Parked(r, time.Hour, "")
		}
	},
	"what a dead-letter topic held is gone with it, and new ones get through": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(context.Context, *kgo.Record) error { return errors.New("no such SKU") }))
		for _, r := range f.Produce(f.many(5)...) {
			f.DeadLettered(r, headers.ReasonTerminal)
		}
		dlq := f.topic + ".dlq"
		f.DeleteTopic(dlq)
		f.CreateTopic(dlq, 2)
		for _, r := range f.Produce(f.many(5)...) {
			f.DeadLettered(r, headers.ReasonTerminal)
		}
	},
}
