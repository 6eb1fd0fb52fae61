package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// A rig is the broker of the comparison.
type rig struct {
	seeds []string
	cl    *kgo.Client
	admin *kadm.Client
}

func connect(seeds []string) (*rig, error) {
	// kadm lists topics from the client's cache if that is younger than this: a new topic would be
	// missing.
	cl, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &rig{seeds, cl, kadm.NewClient(cl)}, nil
}

// create creates a topic, and waits until the broker shows it: it answers a moment before.
func (r *rig) create(ctx context.Context, topic string) error {
	if _, err := r.admin.CreateTopic(ctx, partitions, -1, nil, topic); err != nil {
		return fmt.Errorf("creating %s: %w", topic, err)
	}
	for {
		ends, err := r.ends(ctx, topic)
		if err != nil || len(ends) == partitions {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ends are the ends of a topic's partitions, none while it does not exist.
func (r *rig) ends(ctx context.Context, topic string) ([]int64, error) {
	listed, err := r.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the end of %s: %w", topic, err)
	}
	ends := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		if errors.Is(o.Err, kerr.UnknownTopicOrPartition) || errors.Is(o.Err, kerr.LeaderNotAvailable) || int(p) >= len(ends) || p < 0 {
			return nil, nil
		}
		if o.Err != nil {
			return nil, fmt.Errorf("reading the end of %s/%d: %w", topic, p, o.Err)
		}
		ends[p] = o.Offset
	}
	return ends, nil
}

// offsets are those that the job's group has committed, -1 for none, and the ends of the topic.
func (r *rig) offsets(ctx context.Context, j work.Job) (committed, ends []int64, err error) {
	if ends, err = r.ends(ctx, j.Topic); err != nil {
		return nil, nil, err
	}
	all, err := r.admin.FetchOffsets(ctx, j.Group)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the offsets of %s: %w", j.Group, err)
	}
	for p := range ends {
		at := int64(-1)
		if o, ok := all.Lookup(j.Topic, int32(p)); ok {
			at = o.At
		}
		committed = append(committed, at)
	}
	return committed, ends, nil
}

// remove deletes the topics whose names contain the text.
func (r *rig) remove(ctx context.Context, text string) error {
	topics, err := r.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("listing topics: %w", err)
	}
	var mine []string
	for _, t := range topics.Names() {
		if strings.Contains(t, text) {
			mine = append(mine, t)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	deleted, err := r.admin.DeleteTopics(ctx, mine...)
	if err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	for _, t := range deleted {
		// The broker lists a topic for a moment after its deletion.
		if t.Err != nil && !errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("deleting %s: %w", t.Topic, t.Err)
		}
	}
	return nil
}

// forget deletes the groups whose names contain the text. One that a killed program left has a
// member for a while, and stays.
func (r *rig) forget(ctx context.Context, text string) error {
	groups, err := r.admin.ListGroups(ctx)
	if err != nil {
		return fmt.Errorf("listing groups: %w", err)
	}
	for _, g := range groups.Groups() {
		if !strings.Contains(g, text) {
			continue
		}
		if _, err := r.admin.DeleteGroup(ctx, g); err != nil && !errors.Is(err, kerr.NonEmptyGroup) {
			return fmt.Errorf("deleting group %s: %w", g, err)
		}
	}
	return nil
}

// write writes records to the partitions that they name, and waits for all.
func (r *rig) write(ctx context.Context, linger time.Duration, records iter.Seq[*kgo.Record]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(r.seeds...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(linger),
		kgo.MaxBufferedRecords(200_000),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	for rec := range records {
		cl.Produce(ctx, rec, func(rec *kgo.Record, err error) {
			if err != nil {
				cancel(fmt.Errorf("writing to %s/%d: %w", rec.Topic, rec.Partition, err))
			}
		})
	}
	if err := cl.Flush(ctx); err != nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// fill writes the job's records. They are written in blocks by partition, so that a partition's log
// has large batches, as a busy producer's has.
func (r *rig) fill(ctx context.Context, j work.Job) error {
	block := min(1_000, j.Records/j.Partitions)
	return r.write(ctx, 50*time.Millisecond, func(yield func(*kgo.Record) bool) {
		for i := range j.Records {
			key, turn := i, i/block
			if j.Keys > 0 { // the partition follows from the key, so that a key has one
				key = i % j.Keys
				turn = key
			}
			if !yield(record(j, turn, key, i, time.Time{})) {
				return
			}
		}
	})
}

// warm writes the first record of each partition, which shows that the program reads it.
func (r *rig) warm(ctx context.Context, j work.Job) error {
	return r.write(ctx, 0, func(yield func(*kgo.Record) bool) {
		for p := range j.Partitions {
			if !yield(record(j, p, j.Records+p, j.Records+p, time.Time{})) {
				return
			}
		}
	})
}

// offer writes the job's records at its rate, whatever becomes of them. A record carries the time
// at which it is due by the pace, so that a delay of this producer counts as latency.
func (r *rig) offer(ctx context.Context, j work.Job) error {
	return r.write(ctx, 0, func(yield func(*kgo.Record) bool) {
		begin := time.Now()
		for i := range j.Records {
			due := begin.Add(time.Duration(i) * time.Second / time.Duration(j.Rate))
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(due)):
			}
			if !yield(record(j, i, i, i, due)) {
				return
			}
		}
	})
}

// record is record i of the job.
func record(j work.Job, turn, key, i int, due time.Time) *kgo.Record {
	return &kgo.Record{
		Topic:     j.Topic,
		Partition: int32(turn % j.Partitions),
		Key:       binary.BigEndian.AppendUint64(nil, uint64(key)),
		Value:     work.Value(i, due),
	}
}
