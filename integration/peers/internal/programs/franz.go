package programs

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/peers/internal/work"
)

// franz is bare franz-go: a goroutine for each partition, fed by the poll loop, that handles a
// batch, writes its dead letters, and then marks it.
func franz(ctx context.Context, j work.Job, handle work.Handler) error {
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(j.Seeds...),
		kgo.ConsumerGroup(j.Group),
		kgo.ConsumeTopics(j.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxPartitionBytes(fetch),
		kgo.FetchMaxWait(fetchWait),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(commitInterval),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	asked := ctx
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	do := func(records []*kgo.Record) error {
		var letters []*kgo.Record
		for _, r := range records {
			err := attempt(ctx, j, handle, r.Value)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				letters = append(letters, franzLetter(r, j.DLQ, err))
			}
		}
		if err := cl.ProduceSync(ctx, letters...).FirstErr(); err != nil {
			return fmt.Errorf("writing dead letters: %w", err)
		}
		cl.MarkCommitRecords(records[len(records)-1])
		return nil
	}
	l := lanes[[]*kgo.Record]{depth: aheadBatches, work: func(batches <-chan []*kgo.Record) {
		for records := range batches {
			if err := do(records); err != nil {
				fail(err)
			}
		}
	}}
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			fail(err)
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) > 0 {
				l.put(ctx, p.Partition, p.Records)
			}
		})
	}
	l.close()
	return errors.Join(ended(ctx), cl.CommitMarkedOffsets(context.WithoutCancel(asked)))
}

// franzLetter is the record with headers about its failure.
func franzLetter(r *kgo.Record, dlq string, err error) *kgo.Record {
	return &kgo.Record{Topic: dlq, Key: r.Key, Value: r.Value, Headers: append(r.Headers,
		kgo.RecordHeader{Key: "error", Value: []byte(err.Error())},
		kgo.RecordHeader{Key: "topic", Value: []byte(r.Topic)},
		kgo.RecordHeader{Key: "partition", Value: strconv.AppendInt(nil, int64(r.Partition), 10)},
		kgo.RecordHeader{Key: "offset", Value: strconv.AppendInt(nil, r.Offset, 10)},
	)}
}
