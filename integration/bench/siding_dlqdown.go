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

// sidingDLQDown handles records of two topics, offered at the job's rate. Of one topic some are
// terminal, and their dead-letter topic refuses them for as long as the job says. It measures the
// other topic's records in that time: how many are handled, and their latency.
func sidingDLQDown(ctx context.Context, j job) (report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	other := j
	other.Data.Topic = j.To
	from, to := j.Rate*int(dlqDownBefore/time.Second), j.Rate*int((dlqDownBefore+j.Lasts)/time.Second)
	failing, healthy := newStopwatch(j.Offered, j.Offered-poisoned(j)), newStopwatch(j.Offered, j.Offered)
	var handled atomic.Int64 // of the other topic
	cfg := sidingConfig(j)
	cfg.Topics = append(cfg.Topics, other.Data.Topic)
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = poisonTiers
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		took := time.Since(stamp(r))
		time.Sleep(poisonNap)
		switch {
		case r.Topic == other.Data.Topic:
			healthy.note(index(r), took)
			handled.Add(1)
		case isPoison(index(r), j.Poison):
			return classify.Terminal(errUnavailable)
		default:
			failing.note(index(r), took)
		}
		return nil
	}
	siblings, err := cfg.Naming.Siblings(j.Data.Topic, j.Group, poisonTiers...)
	if err != nil {
		return report{}, err
	}
	cl, err := kgo.NewClient(cfg.Kafka...)
	if err != nil {
		return report{}, err
	}
	defer cl.Close()
	running, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	var m meter
	var rep report
	// measure counts what is handled of the other topic, while the dead-letter topic may refuse
	// all.
	measure := func() error {
		before, begun := handled.Load(), time.Now()
		if err := running.await(ctx, after(j.Lasts)); err != nil {
			return err
		}
		rep.Records, rep.Seconds = handled.Load()-before, time.Since(begun).Seconds()
		return nil
	}
	window := func() error {
		if j.Down == 0 {
			return measure()
		}
		return refused(ctx, kadm.NewClient(cl), siblings.DLQ, measure)
	}
	work := func() error {
		if err := running.await(ctx, running.ready); err != nil {
			return err
		}
		m.begin()
		for _, to := range []job{j, other} {
			go func() {
				if err := offer(ctx, to, j.Offered); err != nil {
					cancel(err)
				}
			}()
		}
		if err := running.await(ctx, after(dlqDownBefore)); err != nil {
			return err
		}
		if err := window(); err != nil {
			return err
		}
		for _, all := range []<-chan struct{}{healthy.done, failing.done} {
			if err := running.await(ctx, all); err != nil {
				return err
			}
		}
		return written(ctx, running, j, siblings.DLQ, int64(poisoned(j)))
	}
	if err := work(); err != nil {
		return report{}, errors.Join(err, context.Cause(ctx), running.stop())
	}
	whole := m.end(rep.Records)
	whole.Records, whole.Seconds = rep.Records, rep.Seconds
	times := healthy.spread(from, to)
	whole.P50, whole.P99 = times.P50, times.P99
	return whole, running.stop()
}

// refused makes the topic refuse records while f runs, and fails if it took one nevertheless.
func refused(ctx context.Context, admin *kadm.Client, topic string, f func() error) error {
	if err := refusal(ctx, admin, topic, true); err != nil {
		return err
	}
	letters := func() (n int64, err error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
		return n, err
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
