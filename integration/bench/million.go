package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/retrytopics"
)

// What is parked and offered in the bench of a million parked records.
var millionTiers = []time.Duration{time.Second, time.Hour}

const (
	millionParked = 1_000_000
	millionRate   = 1_000 // records offered a second, which fail into the short tier
	millionFor    = 30 * time.Second
	millionWarm   = 5 * time.Second
)

// millionBench fills the long tier once: none of its records is due while the
// bench runs, so that each round's consumer finds all of them. All rounds are
// one group, and each begins with reading the million.
func millionBench(ctx context.Context, r *rig) ([]arm, error) {
	const partitions = 8
	topic, err := r.topic(ctx, "src", partitions)
	if err != nil {
		return nil, err
	}
	b := million{
		job: job{
			Program: "siding-parked",
			Group:   r.group("siding", 0),
			Data:    data{Topic: topic, Ends: make([]int64, partitions)},
			Tiers:   millionTiers,
			Rate:    millionRate,
		},
	}
	if b.siblings, err = groupNaming.Siblings(topic, b.job.Group, millionTiers...); err != nil {
		return nil, err
	}
	// The last of them failed just now, the others in the minutes before.
	const rate = 5_000
	last := lot{records: millionParked, rate: rate, from: time.Now().Add(time.Hour - millionParked/rate*time.Second)}
	tiers, err := r.park(ctx, b.job.Data, b.job.Group, millionTiers, lot{}, last)
	if err != nil {
		return nil, err
	}
	b.long = tiers[1]
	if b.filled, err = r.size(ctx, b.long.Topic); err != nil {
		return nil, err
	}
	return []arm{{"siding", func(ctx context.Context, round int) (report, error) {
		length := millionFor
		if round == 0 {
			length = millionWarm
		}
		return b.run(ctx, r, millionRate*int(length/time.Second))
	}}}, nil
}

// million is the bench between its rounds.
type million struct {
	job      job
	siblings retrytopics.Siblings
	long     parked // the tier whose records stay
	filled   int64  // its bytes on the broker
	offered  int64  // in all rounds
}

// run offers so many records, and checks that they are through and that the
// million is where it was.
func (b *million) run(ctx context.Context, r *rig, records int) (report, error) {
	b.job.Offered, b.job.Due = records, []int{records, 0}
	rep, err := r.run(ctx, "siding", b.job)
	if err != nil {
		return report{}, err
	}
	rep.Filled, rep.Held = b.filled, b.long.held
	b.offered += int64(records)
	for _, topic := range []string{b.siblings.Source, b.siblings.Tiers[0].Topic} {
		d, err := r.filled(ctx, topic)
		if err != nil {
			return report{}, err
		}
		if got := d.records(); got != b.offered {
			return report{}, fmt.Errorf("%s holds %d records, want %d", topic, got, b.offered)
		}
		if err := r.consumed(ctx, b.job.Group, d); err != nil {
			return report{}, err
		}
	}
	untouched := data{Topic: b.long.Topic, Ends: make([]int64, len(b.long.Ends))}
	if err := r.consumed(ctx, b.job.Group, untouched); err != nil {
		return report{}, err
	}
	return rep, r.unchanged(ctx, b.long.data)
}
