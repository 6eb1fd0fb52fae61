package main

import (
	"context"
	"errors"
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

// delaysJob handles so many parked records.
func delaysJob(records int) job {
	return job{Program: "siding-parked", Tiers: delaysTiers, Due: []int{records / 2, records / 2}}
}

// runDelays fills the tiers for the turn and its group.
func runDelays(ctx context.Context, t *turn) (report, error) {
	if err := t.source(ctx); err != nil {
		return report{}, err
	}
	half := lot{records: t.job.Due[0], rate: delaysRate / 2, from: time.Now().Add(delaysLead)}
	tiers, err := park(ctx, t.rig, t.job.Data, t.job.Group, t.job.Tiers, half, half)
	if err != nil {
		return report{}, err
	}
	if left := time.Until(half.from); left < delaysLeast {
		return report{}, fmt.Errorf("writing took so long that only %v are left until the first record is due, want %v", left, delaysLeast)
	}
	filled, err := t.size(ctx, t.job.Data.Topic+".retry.")
	if err != nil {
		return report{}, err
	}
	rep, err := unchecked(ctx, t)
	if err != nil {
		return report{}, err
	}
	rep.Filled, rep.Held = filled, tiers[0].held+tiers[1].held
	// A record more would be one that siding parked a second time.
	for _, p := range tiers {
		err = errors.Join(err, t.read(ctx, int(p.records()), p.Topic))
	}
	return rep, err
}
