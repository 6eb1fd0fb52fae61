package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fill creates a topic and writes the records.
//
// They are written in blocks by partition: a partition's log then consists
// of large batches, as a busy producer's does, however many partitions there
// are.
func (r *rig) fill(ctx context.Context, label string, s shape) (data, error) {
	topic, err := r.topic(ctx, label, s.partitions)
	if err != nil {
		return data{}, err
	}
	d := data{Topic: topic, Ends: make([]int64, s.partitions)}
	headers := userHeaders(s.headers)
	return d, r.write(ctx, func(yield func(*kgo.Record) bool) {
		for i := range s.records {
			key, turn := i, i/s.block
			if s.keys > 0 {
				// The partition follows from the key, so that a key has one.
				key = i % s.keys
				turn = key
			}
			if !yield(d.record(int32(turn%int(s.partitions)), key, i, headers)) {
				return
			}
		}
	})
}

// write writes records to the partitions that they name, uncompressed.
func (r *rig) write(ctx context.Context, records iter.Seq[*kgo.Record], opts ...kgo.Opt) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := kgo.NewClient(append(opts,
		kgo.SeedBrokers(r.seeds...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(50*time.Millisecond),
		kgo.MaxBufferedRecords(200_000),
	)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	promise := func(rec *kgo.Record, err error) {
		if err != nil {
			cancel(fmt.Errorf("writing to %s/%d: %w", rec.Topic, rec.Partition, err))
		}
	}
	for rec := range records {
		cl.Produce(ctx, rec, promise)
	}
	if err := cl.Flush(ctx); err != nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
