package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
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

// runPoison checks that each failed record went through all tiers.
func runPoison(ctx context.Context, t *turn) (report, error) {
	rep, err := offered(ctx, t)
	if err != nil {
		return report{}, err
	}
	siblings, err := finished(ctx, t, t.job.Data.Topic)
	for _, tier := range siblings.Tiers {
		err = errors.Join(err, t.read(ctx, poisoned(t.job), tier.Topic))
	}
	return rep, err
}

// finished checks that every record of the sources is: all offsets are committed, and the
// dead-letter topic has each failed record once.
func finished(ctx context.Context, t *turn, sources ...string) (retrytopics.Siblings, error) {
	siblings, err := groupNaming.Siblings(t.job.Data.Topic, t.job.Group, poisonTiers...)
	if err != nil {
		return siblings, err
	}
	_, lost := t.holds(ctx, poisoned(t.job), siblings.DLQ)
	return siblings, errors.Join(lost, t.read(ctx, t.job.Offered, sources...))
}

// poisonTiers are what a record passes through that fails each time.
var poisonTiers = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// poisonNap is what the handler sleeps. The kernel makes about 1.1 ms of it.
const poisonNap = 200 * time.Microsecond

// sidingPoison handles records that are offered at the job's rate, of which some fail until they
// are dead letters. It measures the latency of the healthy ones, from the due time of the send to
// the start of their handler. The handler's own time is not included: in both figures it would hide
// differences.
func sidingPoison(ctx context.Context, j job) (report, error) {
	var m meter
	failing := poisoned(j)
	watch := newStopwatch(j.Offered, j.Offered-failing)
	cfg := sidingConfig(j)
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = poisonTiers
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		took := time.Since(stamp(r))
		time.Sleep(poisonNap)
		if isPoison(index(r), j.Poison) {
			return errUnavailable
		}
		watch.note(index(r), took)
		return nil
	}
	siblings, err := cfg.Naming.Siblings(j.Data.Topic, j.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	return trial(ctx, cfg, func(ctx context.Context, c *running) (report, error) {
		if err := c.await(ctx, c.Ready()); err != nil {
			return report{}, err
		}
		m.begin()
		c.offer(ctx, j)
		if err := c.await(ctx, watch.done); err != nil {
			return report{}, err
		}
		if err := written(ctx, c, j, siblings.DLQ, int64(failing)); err != nil {
			return report{}, err
		}
		rep := m.end(int64(j.Offered))
		times := watch.spread(0, j.Offered)
		rep.P50, rep.P99 = times.P50, times.P99
		return rep, nil
	})
}

// isPoison reports whether record i fails: one in so many, spread over the partitions and the time,
// the same in each run.
func isPoison(i, oneIn int) bool {
	// As in nap. The low bits of the product follow i's too closely.
	return oneIn > 0 && int(uint32(i)*2654435761>>16)%oneIn == 0
}

// poisoned counts the records of the job that fail.
func poisoned(j job) (n int) {
	for i := range j.Offered {
		if isPoison(i, j.Poison) {
			n++
		}
	}
	return n
}
