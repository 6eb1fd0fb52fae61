package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// failingTier is so long that nothing falls due while the bench runs.
const failingTier = time.Hour

// errUnavailable is what the failing handler returns.
var errUnavailable = classify.As(classify.Retryable(errors.New(failingMessage)), failingClass)

// sidingBridge lets every record fail into the first tier, and is done when
// all copies are acknowledged and the source's offsets are committed. With
// Whole it also waits until the tier was read to its end.
func sidingBridge(ctx context.Context, j job) (report, error) {
	var m meter
	cfg := sidingConfig(j)
	cfg.Kafka = append(cfg.Kafka, kgo.ProducerBatchCompression(kgo.NoCompression()))
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = []time.Duration{failingTier}
	cfg.Policy.Breaker.Off = true // every record fails
	cfg.Handler = func(context.Context, *kgo.Record) error {
		m.begin()
		return errUnavailable
	}
	siblings, err := cfg.Naming.Siblings(j.Data.Topic, j.Group, failingTier)
	if err != nil {
		return report{}, err
	}
	work := func(ctx context.Context, c *running) (report, error) {
		return report{}, written(ctx, c, j, siblings.Tiers[0].Topic, j.Data.records())
	}
	if j.Whole {
		work = func(ctx context.Context, c *running) (report, error) {
			return report{}, parkedAll(ctx, c, j.Data.records())
		}
	}
	// Draining commits; it returns when the broker has answered.
	if _, err := trial(ctx, cfg, work); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// parkedAll waits until the consumer's health counts so many parked records: the consumer has read
// them from the tier, and they wait for their time.
func parkedAll(ctx context.Context, r *running, records int64) error {
	return r.poll(ctx, 10*time.Millisecond, func() (bool, error) {
		n := int64(0)
		for _, lane := range r.Health().Lanes {
			n += int64(lane.Parked)
		}
		return n >= records, nil
	})
}

// written waits until the topic holds so many records.
func written(ctx context.Context, r *running, j job, topic string, records int64) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(j.Seeds...), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	return r.poll(ctx, 10*time.Millisecond, func() (bool, error) {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return false, fmt.Errorf("reading the end of %s: %w", topic, err)
		}
		var n int64
		ends.Each(func(o kadm.ListedOffset) {
			if o.Err == nil { // the topic may not be there yet
				n += o.Offset
			}
		})
		return n >= records, nil
	})
}
