package main

import (
	"context"
	"errors"
	"time"
)

// What is parked and offered in the bench of a million parked records.
var millionTiers = []time.Duration{time.Second, time.Hour}

const (
	millionParked = 1_000_000
	millionRate   = 1_000 // records offered a second, which fail into the short tier
	millionFor    = 30 * time.Second
	millionWarm   = 5 * time.Second
)

// millionArms fills the long tier once: none of its records is due while the bench runs, so that
// each round's consumer finds all of them. All rounds are one group, and each begins with reading
// the million.
func millionArms(ctx context.Context, r *rig) ([]arm, error) {
	const partitions = 8
	topic, err := r.topic(ctx, "src", partitions)
	if err != nil {
		return nil, err
	}
	m := million{group: r.group("siding", 0), source: data{Topic: topic, Ends: make([]int64, partitions)}}
	// The last of them failed just now, the others in the minutes before.
	const rate = 5_000
	last := lot{records: millionParked, rate: rate, from: time.Now().Add(time.Hour - millionParked/rate*time.Second)}
	if m.tiers, err = park(ctx, r, m.source, m.group, millionTiers, lot{}, last); err != nil {
		return nil, err
	}
	if m.filled, err = r.size(ctx, m.tiers[1].Topic); err != nil {
		return nil, err
	}
	of := func(length time.Duration) job {
		records := millionRate * int(length/time.Second)
		return job{Program: "siding-parked", Tiers: millionTiers, Rate: millionRate, Offered: records, Due: []int{records, 0}}
	}
	return []arm{{name: "siding", job: of(millionFor), warm: of(millionWarm), run: m.run}}, nil
}

// million is the bench between its rounds.
type million struct {
	group   string
	source  data
	tiers   []parked // of the second one the records stay
	filled  int64    // its bytes on the broker
	offered int      // in all rounds
}

// run checks that the offered records are through, and that the million is where it was.
func (m *million) run(ctx context.Context, t *turn) (report, error) {
	t.job.Group, t.job.Data = m.group, m.source
	rep, err := unchecked(ctx, t)
	if err != nil {
		return report{}, err
	}
	short, long := m.tiers[0], m.tiers[1]
	rep.Filled, rep.Held = m.filled, long.held
	m.offered += t.job.Offered
	_, lost := t.holds(ctx, int(long.records()), long.Topic)
	return rep, errors.Join(lost,
		t.read(ctx, m.offered, m.source.Topic, short.Topic),
		t.consumed(ctx, m.group, data{Topic: long.Topic, Ends: make([]int64, len(long.Ends))}))
}
