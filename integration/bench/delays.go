package main

import (
	"context"
	"fmt"
	"time"
)

// The parked records of the bench of delays: two tiers, each of which has half of the records and
// half of the rate at which they fall due. With the default jitter each tier mixes some seconds of
// its due times.
//
// The tiers are so long that all their records are due within a full stay after they were written,
// though they were written all at once. Otherwise siding would park the last of them a second time.
var delaysTiers = []time.Duration{90 * time.Second, 2 * time.Minute}

const (
	delaysRate    = 5_000 // records due a second, in all
	delaysRecords = 300_000
	delaysWarm    = 50_000
	// delaysLead is from the first record's writing to its due time: for the
	// others' writing, and for the consumer to read them.
	delaysLead = 15 * time.Second
	// delaysLeast is the part of it that must be left when the consumer starts. Otherwise the bench
	// would measure how long records take to be read for the first time.
	delaysLeast = 8 * time.Second
)

// delaysBench fills the tiers for each round and its group.
func delaysBench(_ context.Context, r *rig) ([]arm, error) {
	return []arm{{"siding", func(ctx context.Context, round int) (report, error) {
		records := delaysRecords
		if round == 0 {
			records = delaysWarm
		}
		return r.delays(ctx, round, records)
	}}}, nil
}

func (r *rig) delays(ctx context.Context, round, records int) (report, error) {
	const partitions = 8
	topic, err := r.topic(ctx, fmt.Sprintf("src-%d", round), partitions)
	if err != nil {
		return report{}, err
	}
	j := job{
		Program: "siding-parked",
		Group:   r.group("siding", round),
		Data:    data{Topic: topic, Ends: make([]int64, partitions)},
		Tiers:   delaysTiers,
		Due:     []int{records / 2, records / 2},
	}
	half := lot{records: records / 2, rate: delaysRate / 2, from: time.Now().Add(delaysLead)}
	tiers, err := r.park(ctx, j.Data, j.Group, j.Tiers, half, half)
	if err != nil {
		return report{}, err
	}
	if left := time.Until(half.from); left < delaysLeast {
		return report{}, fmt.Errorf("writing took so long that only %v are left until the first record is due, want %v", left, delaysLeast)
	}
	filled, err := r.size(ctx, topic+".retry.")
	if err != nil {
		return report{}, err
	}
	rep, err := r.run(ctx, "siding", j)
	if err != nil {
		return report{}, err
	}
	rep.Filled, rep.Held = filled, tiers[0].held+tiers[1].held
	for _, t := range tiers {
		if err := r.unchanged(ctx, t.data); err != nil {
			return report{}, err
		}
		if err := r.consumed(ctx, j.Group, t.data); err != nil {
			return report{}, err
		}
	}
	return rep, r.deleteTopics(ctx, topic)
}

// unchanged checks that no record was added to the topic since: siding would have parked that
// record a second time.
func (r *rig) unchanged(ctx context.Context, d data) error {
	now, err := r.filled(ctx, d.Topic)
	if err != nil {
		return err
	}
	if got, want := now.records(), d.records(); got != want {
		return fmt.Errorf("%s holds %d records, want the %d that were written to it before", d.Topic, got, want)
	}
	return nil
}
