package main

import (
	"context"
	"errors"
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

// poisonJob offers records for so long.
func poisonJob(length time.Duration, oneIn int) job {
	return job{Program: "siding-poison", Rate: poisonRate, Offered: poisonRate * int(length/time.Second), Poison: oneIn}
}

// runPoison checks that every record is finished: all offsets are committed, and the DLQ has each
// failed record once.
func runPoison(ctx context.Context, t *turn) (report, error) {
	rep, err := offered(ctx, t)
	if err != nil {
		return report{}, err
	}
	siblings, err := groupNaming.Siblings(t.job.Data.Topic, t.job.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	failing := poisoned(t.job)
	_, lost := t.holds(ctx, failing, siblings.DLQ)
	return rep, errors.Join(lost,
		t.read(ctx, t.job.Offered, t.job.Data.Topic),
		t.read(ctx, failing, siblings.Tiers[0].Topic, siblings.Tiers[1].Topic, siblings.Tiers[2].Topic))
}
