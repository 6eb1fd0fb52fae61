package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
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
func runPoison(t *turn) report {
	rep := t.paced()
	finished(t, t.job.Data.Topic)
	for _, tier := range siblingsOf(t.job, poisonTiers...).Tiers {
		t.read(poisoned(t.job), tier.Topic)
	}
	return rep
}

// finished checks that every record of the sources is: all offsets are committed, and the
// dead-letter topic has each failed record once.
func finished(t *turn, sources ...string) {
	t.holds(poisoned(t.job), siblingsOf(t.job).DLQ)
	t.read(t.job.Offered, sources...)
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
		watch.record(index(r), took)
		return nil
	}
	return paced(ctx, cfg, &m, j, func(c *running) report {
		c.await(watch.done)
		c.written(j, siblingsOf(j).DLQ, int64(failing))
		rep := m.end(int64(j.Offered))
		times := watch.spread(0, j.Offered)
		rep.P50, rep.P99 = times.P50, times.P99
		return rep
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
