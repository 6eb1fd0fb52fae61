package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A pace spreads records evenly over time: record i is due i/rate seconds
// after the start.
type pace struct {
	start time.Time
	rate  int // records a second
}

// at is when record i is due.
func (p pace) at(i int) time.Time {
	// In two parts: i seconds in nanoseconds would overflow early.
	whole, rest := i/p.rate, i%p.rate
	return p.start.Add(time.Duration(whole)*time.Second + time.Duration(rest)*time.Second/time.Duration(p.rate))
}

// produce writes n records to the job's topic, in turn to its partitions, at the job's rate,
// whatever becomes of them.
//
// A record carries the time at which it is due by the pace, not the time of the send. So a delay of
// the producer counts as latency of the records that waited.
func produce(ctx context.Context, j job, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(j.Seeds...),
		kgo.DefaultProduceTopic(j.Data.Topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(0),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.Ping(ctx); err != nil {
		return fmt.Errorf("reaching the broker: %w", err)
	}
	var (
		acked   atomic.Int64
		promise = func(rec *kgo.Record, err error) {
			if err != nil {
				cancel(fmt.Errorf("writing to %s/%d: %w", rec.Topic, rec.Partition, err))
				return
			}
			acked.Add(1)
		}
		partitions = len(j.Data.Ends)
		p          = pace{time.Now(), j.Rate}
		tick       = time.NewTicker(time.Millisecond)
	)
	defer tick.Stop()
	for i := 0; i < n; {
		for now := time.Now(); i < n && !p.at(i).After(now); i++ {
			cl.Produce(ctx, &kgo.Record{Value: stamped(i, p.at(i)), Partition: int32(i % partitions)}, promise)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	if err := cl.Flush(ctx); err != nil || acked.Load() < int64(n) {
		return context.Cause(ctx)
	}
	return nil
}

// stamped is the value of record i, due at t.
func stamped(i int, t time.Time) []byte {
	b := slices.Clone(noise)
	binary.BigEndian.PutUint64(b, uint64(i))
	binary.BigEndian.PutUint64(b[8:], uint64(t.UnixNano()))
	return b
}

// stamp is the time that a value carries.
func stamp(r *kgo.Record) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(r.Value[8:])))
}
