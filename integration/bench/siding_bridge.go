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
	running, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	work := func() error { return written(ctx, running, j, siblings.Tiers[0].Topic, j.Data.records()) }
	if j.Whole {
		work = func() error { return parkedAll(ctx, running, j.Data.records()) }
	}
	if err := work(); err != nil {
		return report{}, errors.Join(err, running.stop())
	}
	// Draining commits; it returns when the broker has answered.
	if err := running.stop(); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// parkedAll waits until the consumer's health counts so many parked records:
// the consumer has read them from the tier, and they wait for their time.
func parkedAll(ctx context.Context, running *running, records int64) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-running.ended:
			return errors.New("the consumer ended before its work")
		case <-tick.C:
		}
		n := int64(0)
		for _, lane := range running.health().Lanes {
			n += int64(lane.Parked)
		}
		if n >= records {
			return nil
		}
	}
}

// written waits until the topic holds so many records.
func written(ctx context.Context, running *running, j job, topic string, records int64) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(j.Seeds...), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-running.ended:
			return errors.New("the consumer ended before its work")
		case <-tick.C:
		}
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err != nil {
			return fmt.Errorf("reading the end of %s: %w", topic, err)
		}
		var n int64
		ends.Each(func(o kadm.ListedOffset) {
			if o.Err == nil { // the topic may not be there yet
				n += o.Offset
			}
		})
		if n >= records {
			return nil
		}
	}
}
