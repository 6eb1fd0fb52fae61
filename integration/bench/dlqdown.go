package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
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

// runDLQDown gives the program a second topic, and checks that nothing is lost.
func runDLQDown(t *turn) report {
	t.job.To = t.empty("healthy").Topic
	rep := t.paced()
	finished(t, t.job.Data.Topic, t.job.To)
	return rep
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

// sidingDLQDown handles records of two topics, offered at the job's rate. Of one topic some are
// terminal, and their dead-letter topic refuses them for as long as the job says. It measures the
// other topic's records in that time: how many are handled, and their latency.
func sidingDLQDown(ctx context.Context, j job) (report, error) {
	var m meter
	other := j
	other.Data.Topic = j.To
	from, to := j.Rate*int(dlqDownBefore/time.Second), j.Rate*int((dlqDownBefore+j.Lasts)/time.Second)
	failing, healthy := newStopwatch(j.Offered, j.Offered-poisoned(j)), newStopwatch(j.Offered, j.Offered)
	var handled atomic.Int64 // of the other topic
	cfg := sidingConfig(j)
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = poisonTiers
	cfg.Topics = append(cfg.Topics, other.Data.Topic)
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		took := time.Since(stamp(r))
		time.Sleep(poisonNap)
		switch {
		case r.Topic == other.Data.Topic:
			healthy.record(index(r), took)
			handled.Add(1)
		case isPoison(index(r), j.Poison):
			return classify.Terminal(errUnavailable)
		default:
			failing.record(index(r), took)
		}
		return nil
	}
	letters := siblingsOf(j).DLQ
	return paced(ctx, cfg, &m, j, func(c *running) report {
		c.produce(other)
		c.await(after(dlqDownBefore))
		var window report
		measure := func() error {
			before, begun := handled.Load(), time.Now()
			err := c.until(after(j.Lasts))
			window.Records, window.Seconds = handled.Load()-before, time.Since(begun).Seconds()
			return err
		}
		c.do(func() error {
			if j.Down == 0 {
				return measure()
			}
			return refused(c.ctx, cfg.Kafka, letters, measure)
		})
		c.await(healthy.done, failing.done)
		c.written(j, letters, int64(poisoned(j)))
		rep := m.end(window.Records)
		rep.Seconds = window.Seconds
		times := healthy.spread(from, to)
		rep.P50, rep.P99 = times.P50, times.P99
		return rep
	})
}

// refused makes the topic refuse records while f runs, and fails if it took one nevertheless.
func refused(ctx context.Context, opts []kgo.Opt, topic string, f func() error) error {
	admin, err := kadm.NewOptClient(opts...)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := refusal(ctx, admin, topic, true); err != nil {
		return err
	}
	letters := func() (n int64, err error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
		return n, errors.Join(err, ends.Error())
	}
	time.Sleep(time.Second) // until the broker's partitions have the new setting
	before, err := letters()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	since, err := letters()
	if err != nil {
		return err
	}
	if since != before {
		return fmt.Errorf("%s took %d letters, though it was to refuse them", topic, since-before)
	}
	return refusal(ctx, admin, topic, false)
}
