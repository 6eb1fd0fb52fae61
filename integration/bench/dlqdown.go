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

// dlqDownJob offers records, and measures for so long. Either the dead-letter topic refuses its
// letters in that time, or it takes them.
func dlqDownJob(lasts time.Duration, down bool) job {
	j := job{
		Program: "siding-dlq-down", Rate: dlqDownRate, Poison: dlqDownOne, Lasts: lasts,
		Offered: dlqDownRate * int((dlqDownBefore+lasts+dlqDownAfter)/time.Second),
	}
	if down {
		j.Down = lasts
	}
	return j
}

// runDLQDown checks that nothing is lost: all offsets are committed, and the dead-letter topic has
// each failed record once.
func runDLQDown(ctx context.Context, t *turn) (report, error) {
	healthy, err := t.empty(ctx, "healthy")
	if err != nil {
		return report{}, err
	}
	t.job.To = healthy.Topic
	rep, err := offered(ctx, t)
	if err != nil {
		return report{}, err
	}
	siblings, err := groupNaming.Siblings(t.job.Data.Topic, t.job.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	_, lost := t.holds(ctx, poisoned(t.job), siblings.DLQ)
	return rep, errors.Join(lost, t.read(ctx, t.job.Offered, t.job.Data.Topic, t.job.To))
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
