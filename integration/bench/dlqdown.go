package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// The incident of the bench of dead letters that cannot be written: two topics, each at a steady
// rate. Of one of them a part fails for good.
const (
	dlqDownRate   = 2_000 // records of each topic a second
	dlqDownBefore = 10 * time.Second
	dlqDownLasts  = 2 * time.Minute
	dlqDownAfter  = 20 * time.Second
	dlqDownWarm   = 10 * time.Second
	dlqDownOne    = 10 // in so many fails
)

// dlqDownBench compares siding while the dead-letter topic refuses its letters with siding while it
// takes them.
func dlqDownBench(_ context.Context, r *rig) ([]arm, error) {
	program := func(name string, down bool) arm {
		return arm{name, func(ctx context.Context, round int) (report, error) {
			lasts := dlqDownLasts
			if round == 0 {
				lasts = dlqDownWarm
			}
			j := job{Rate: dlqDownRate, Offered: dlqDownRate * int((dlqDownBefore+lasts+dlqDownAfter)/time.Second), Poison: dlqDownOne, Lasts: lasts}
			if down {
				j.Down = lasts
			}
			return r.dlqDown(ctx, name, round, j)
		}}
	}
	return []arm{program("down", true), program("clean", false)}, nil
}

// dlqDown runs the job on topics of its own, and checks that nothing is lost: all offsets are
// committed, and the dead-letter topic has each failed record once.
func (r *rig) dlqDown(ctx context.Context, name string, round int, j job) (report, error) {
	const partitions = 8
	failing, err := r.topic(ctx, fmt.Sprintf("%s-failing-%d", name, round), partitions)
	if err != nil {
		return report{}, err
	}
	healthy, err := r.topic(ctx, fmt.Sprintf("%s-healthy-%d", name, round), partitions)
	if err != nil {
		return report{}, err
	}
	j.Program, j.Group, j.To = "siding-dlq-down", r.group(name, round), healthy
	j.Data = data{Topic: failing, Ends: make([]int64, partitions)}
	rep, err := r.run(ctx, name, j)
	if err != nil {
		return report{}, err
	}
	siblings, err := groupNaming.Siblings(failing, j.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	for topic, want := range map[string]int{failing: j.Offered, healthy: j.Offered, siblings.DLQ: poisoned(j)} {
		d, err := r.filled(ctx, topic)
		if err != nil {
			return report{}, err
		}
		if d.records() != int64(want) {
			return report{}, fmt.Errorf("%s has %d records, want %d", topic, d.records(), want)
		}
		if topic == siblings.DLQ {
			continue
		}
		if err := r.consumed(ctx, j.Group, d); err != nil {
			return report{}, err
		}
	}
	return rep, errors.Join(r.deleteTopics(ctx, failing), r.deleteTopics(ctx, healthy))
}

// refusal makes a topic refuse records that have no key, or take them again: a compacted one does.
func refusal(ctx context.Context, admin *kadm.Client, topic string, refuse bool) error {
	policy := "delete"
	if refuse {
		policy = "compact"
	}
	answers, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &policy}}, topic)
	if err != nil {
		return fmt.Errorf("setting cleanup.policy of %s: %w", topic, err)
	}
	for _, a := range answers {
		err = errors.Join(err, a.Err)
	}
	return err
}
