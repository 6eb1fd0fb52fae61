package redrive

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/client"
)

// Bounds of Traffic.
const (
	defaultTraffic = 10 * time.Second
	leastTraffic   = 2 * time.Second // consumers commit at intervals, of a second as a rule
	mostTraffic    = 5 * time.Minute
)

// Traffic measures how many records a second the groups of a plan finish on the source at present,
// for a [Pace.Rate] that is a share of it. It adds up how far their committed offsets move on. The
// time for that is over: 10 s if that is 0, at least 2 s, and at most 5 min. Of several groups the
// slowest counts. Transaction markers count as records. Traffic changes nothing, and returns when
// ctx ends.
//
// Traffic counts neither retry topics, nor offsets that went back, nor offsets that an operator set
// while the group was stopped. It polls every second to see that, with the limits that [Outcome]
// names. It cannot detect a consumer that skips records by itself.
//
// It returns a *[RefusedError] with the reason [RefusedNoTraffic] if a group finished nothing in
// that time, or if no letter of the plan names a group.
func (r *Redriver) Traffic(ctx context.Context, p *Plan, over time.Duration) (perSecond float64, err error) {
	topic := p.Selection.Topic
	if p, err = r.adopt(p); err != nil {
		return 0, within(topic, err)
	}
	set(&over, defaultTraffic)
	over = min(max(over, leastTraffic), mostTraffic)
	t, groups := p.topics, p.groups()
	if len(groups) == 0 {
		return 0, t.refuse(RefusedNoTraffic, "the letters name no group: give a rate in records a second")
	}
	adm, err := client.NewAdmin(r.cfg.Kafka...)
	if err != nil {
		return 0, within(topic, err)
	}
	defer adm.Close()
	measured := make([]traffic, len(groups))
	began := time.Now()
	for polls := 0; polls == 0 || time.Since(began) < over; polls++ {
		if polls > 0 {
			pause(ctx, min(pollEvery, over-time.Since(began)))
		}
		for i, g := range groups {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			if err := measured[i].poll(ctx, adm, t.source, g); err != nil {
				return 0, within(topic, err)
			}
		}
		if polls == 0 {
			began = time.Now()
		}
	}
	took := time.Since(began)
	for i, g := range groups {
		finished := measured[i].finished
		if finished == 0 {
			return 0, t.refuse(RefusedNoTraffic, "group %s finished no record of %s within %v: give a rate in records a second", g, t.source, over)
		}
		if rate := float64(finished) / took.Seconds(); i == 0 || rate < perSecond {
			perSecond = rate
		}
	}
	return perSecond, nil
}

// traffic is what a group finished on a topic between polls.
type traffic struct {
	offsets  groupOffsets
	finished int64
}

// poll adds what the group finished since the last poll.
func (f *traffic) poll(ctx context.Context, adm *kadm.Client, topic, group string) error {
	ids, err := members(ctx, adm, group)
	if err != nil {
		return err
	}
	offsets, err := fetchOffsets(ctx, adm, group)
	if err != nil {
		return err
	}
	for _, o := range offsets[topic] {
		if o.Err != nil {
			return fmt.Errorf("fetch the offset of group %q on %s/%d: %w", group, topic, o.Partition, o.Err)
		}
	}
	before := f.offsets.at[topic]
	f.offsets = f.offsets.next(ids, kadm.OffsetResponses{topic: offsets[topic]})
	for partition, at := range f.offsets.at[topic] {
		was, known := before[partition]
		if !known {
			continue
		}
		skipped := f.offsets.reset[topic][partition]
		f.finished += max(0, at-was) - max(0, min(at, skipped.until)-max(was, skipped.from))
	}
	return nil
}
