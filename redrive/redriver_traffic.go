package redrive

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive/internal/bounds"
)

// Bounds of Traffic.
const (
	defaultTraffic = 10 * time.Second
	leastTraffic   = 2 * time.Second // consumers commit at intervals, of a second as a rule
	mostTraffic    = 5 * time.Minute
)

// Traffic measures how many records a second the groups of a plan finish on the source at present,
// for a [Pace.Rate] that is a share of it. It reads their committed offsets twice. The time between
// is over: 10 s if that is 0, at least 2 s, and at most 5 min. Of several groups the slowest
// counts. Traffic counts neither retry topics nor offsets that went back. It changes nothing, and
// returns when ctx ends.
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
	before, err := committedOn(ctx, adm, t.source, groups)
	if err != nil {
		return 0, within(topic, err)
	}
	began := time.Now()
	if pause(ctx, over); ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	after, err := committedOn(ctx, adm, t.source, groups)
	if err != nil {
		return 0, within(topic, err)
	}
	took := time.Since(began)
	for i, g := range groups {
		finished := int64(0)
		for partition, at := range after[i] {
			if was, known := before[i][partition]; known {
				finished += max(at-was, 0)
			}
		}
		if finished == 0 {
			return 0, t.refuse(RefusedNoTraffic, "group %s finished no record of %s within %v: give a rate in records a second", g, t.source, over)
		}
		if rate := float64(finished) / took.Seconds(); i == 0 || rate < perSecond {
			perSecond = rate
		}
	}
	return perSecond, nil
}

// committedOn returns the committed offsets of groups on a topic, by partition.
func committedOn(ctx context.Context, adm *kadm.Client, topic string, groups []string) (all []map[int32]int64, err error) {
	for _, g := range groups {
		offsets, err := fetchOffsets(ctx, adm, g)
		if err != nil {
			return nil, err
		}
		at := bounds.Positions{}
		for _, o := range offsets[topic] {
			if o.Err != nil {
				return nil, fmt.Errorf("fetch the offset of group %q on %s/%d: %w", g, topic, o.Partition, o.Err)
			}
			if o.At >= 0 {
				at.Set(topic, o.Partition, o.At)
			}
		}
		all = append(all, at[topic])
	}
	return all, nil
}
