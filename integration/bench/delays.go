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

// dueTiers are those of the bench of many records due at a time. Their jitter mixes some seconds of
// due times, which fill the memory for parked records.
var dueTiers = []time.Duration{45 * time.Second, time.Minute}

const (
	dueRate    = 50_000
	dueRecords = 600_000
	dueWarm    = 100_000
	dueLead    = 25 * time.Second
	dueBudget  = 512 << 20
)

// dueJob is about records of which many are due at a time.
func dueJob(records int, budget int64) job {
	j := delaysJob(dueTiers, dueRate, records)
	j.Lead, j.Unseen, j.Budget = dueLead, true, budget
	return j
}

// delaysJob handles so many parked records, half of them from each of the two tiers.
func delaysJob(tiers []time.Duration, rate, records int) job {
	return job{Program: "siding-parked", Lead: delaysLead, Tiers: tiers, Rate: rate, Due: []int{records / 2, records / 2}}
}

// runDelays fills the tiers for the turn and its group.
func runDelays(t *turn) report {
	t.source()
	half := lot{records: t.job.Due[0], rate: t.job.Rate / 2, from: time.Now().Add(t.job.Lead)}
	var tiers []parked
	var filled int64
	t.do(func() (err error) {
		if tiers, err = park(t.ctx, t.rig, t.job.Data, t.job.Group, t.job.Tiers, half, half); err != nil {
			return err
		}
		if left := time.Until(half.from); left < delaysLeast {
			return fmt.Errorf("writing took so long that only %v are left until the first record is due, want %v", left, delaysLeast)
		}
		filled, err = t.size(t.ctx, t.job.Data.Topic+".retry.")
		return err
	})
	rep := unchecked(t)
	rep.Filled = filled
	// A record more would be one that siding parked a second time.
	for _, p := range tiers {
		rep.Held += p.held
		t.read(int(p.records()), p.Topic)
	}
	return rep
}

// What is parked and offered in the bench of ten million parked records.
var manyTiers = []time.Duration{time.Second, time.Hour}

const (
	manyParked = 10_000_000
	manyRate   = 1_000 // records offered a second, which fail into the short tier
	manyFor    = 30 * time.Second
)

// manyArms fills the long tier once: none of its records is due while the bench runs, so that
// each round's consumer finds all of them. All rounds are one group, and each begins with reading
// them.
func manyArms(ctx context.Context, r *rig) ([]arm, error) {
	const partitions = 8
	topic, err := r.topic(ctx, "src", partitions)
	if err != nil {
		return nil, err
	}
	m := many{group: r.group("siding", 0), source: data{Topic: topic, Ends: make([]int64, partitions)}}
	// The last of them failed just now, the others in the minutes before.
	const rate = 10_000
	last := lot{records: manyParked, rate: rate, from: time.Now().Add(time.Hour - manyParked/rate*time.Second)}
	if m.tiers, err = park(ctx, r, m.source, m.group, manyTiers, lot{}, last); err != nil {
		return nil, err
	}
	if m.filled, err = r.size(ctx, m.tiers[1].Topic); err != nil {
		return nil, err
	}
	records := manyRate * int(manyFor/time.Second)
	j := job{Program: "siding-parked", Tiers: manyTiers, Rate: manyRate, Offered: records, Due: []int{records, 0}, Stay: manyParked}
	return []arm{{name: "siding", job: j, run: m.run}}, nil
}

// many is the bench between its rounds.
type many struct {
	group   string
	source  data
	tiers   []parked // of the second one the records stay
	filled  int64    // its bytes on the broker
	offered int      // in all rounds
}

// run checks that the offered records are through, and that the others are where they were.
func (m *many) run(t *turn) report {
	t.job.Group, t.job.Data = m.group, m.source
	rep := unchecked(t)
	short, long := m.tiers[0], m.tiers[1]
	rep.Filled, rep.Held = m.filled, long.held
	m.offered += t.job.Offered
	t.holds(int(long.records()), long.Topic)
	t.read(m.offered, m.source.Topic, short.Topic)
	t.committed(m.group, data{Topic: long.Topic, Ends: make([]int64, len(long.Ends))})
	return rep
}
