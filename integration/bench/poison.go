package main

import (
	"context"
	"fmt"
	"time"
)

// The offered records of the bench of poison. The warm-up is short: only connections and code can
// be cold.
const (
	poisonRate = 2_000 // records a second
	poisonFor  = time.Minute
	poisonWarm = 10 * time.Second
	poisonOne  = 100 // in so many fails
)

// poisonBench compares siding with itself without failures. Each run has its own topic, since the
// records are offered while it runs.
func poisonBench(_ context.Context, r *rig) ([]arm, error) {
	program := func(name string, oneIn int) arm {
		return arm{name, func(ctx context.Context, round int) (report, error) {
			length := poisonFor
			if round == 0 {
				length = poisonWarm
			}
			return r.poison(ctx, name, round, job{Rate: poisonRate, Offered: poisonRate * int(length/time.Second), Poison: oneIn})
		}}
	}
	return []arm{program("poisoned", poisonOne), program("clean", 0)}, nil
}

// poison runs the job on a topic of its own, and checks that every record is finished: all offsets
// are committed, and the DLQ has each failed record once.
func (r *rig) poison(ctx context.Context, name string, round int, j job) (report, error) {
	const partitions = 8
	topic, err := r.topic(ctx, fmt.Sprintf("%s-%d", name, round), partitions)
	if err != nil {
		return report{}, err
	}
	j.Program, j.Group = "siding-poison", r.group(name, round)
	j.Data = data{Topic: topic, Ends: make([]int64, partitions)}
	rep, err := r.run(ctx, name, j)
	if err != nil {
		return report{}, err
	}
	siblings, err := groupNaming.Siblings(topic, j.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	failing := int64(poisoned(j))
	for _, t := range []struct {
		topic string
		want  int64
		read  bool
	}{
		{topic, int64(j.Offered), true},
		{siblings.Tiers[0].Topic, failing, true},
		{siblings.Tiers[1].Topic, failing, true},
		{siblings.Tiers[2].Topic, failing, true},
		{siblings.DLQ, failing, false},
	} {
		d, err := r.filled(ctx, t.topic)
		if err != nil {
			return report{}, err
		}
		if got := d.records(); got != t.want {
			return report{}, fmt.Errorf("%s holds %d records, want %d", t.topic, got, t.want)
		}
		if t.read {
			if err := r.consumed(ctx, j.Group, d); err != nil {
				return report{}, err
			}
		}
	}
	return rep, r.deleteTopics(ctx, topic)
}
