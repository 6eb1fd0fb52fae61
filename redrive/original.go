package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/client"
)

// errValueLost says that a value which a letter lacks is not at its original place any more.
var errValueLost = errors.New("the original record is gone")

// originalWait bounds the reading of an original record.
const originalWait = 10 * time.Second

// originalValue reads the value that was left out of a letter, where its record was first read.
func (r *Redriver) originalValue(ctx context.Context, at headers.Position) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, originalWait)
	defer cancel()
	cl, err := client.New(append(slices.Clip(r.cfg.Kafka),
		kgo.FetchIsolationLevel(kgo.ReadUncommitted()), // it was read once, so it was committed
		kgo.FetchMaxWait(250*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	topics, err := adm.ListTopics(ctx, at.Topic)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	d := topics[at.Topic]
	if d.Err != nil || at.TopicID != [16]byte{} && d.ID != (kadm.TopicID{}) && d.ID != kadm.TopicID(at.TopicID) {
		return nil, errValueLost // deleted, or another topic by now
	}
	starts, err := adm.ListStartOffsets(ctx, at.Topic)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	end, err := adm.ListEndOffsets(ctx, at.Topic)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	first, ok1 := starts.Lookup(at.Topic, at.Partition)
	last, ok2 := end.Lookup(at.Topic, at.Partition)
	if !ok1 || !ok2 {
		return nil, errValueLost // the topic has fewer partitions
	}
	if first.Err != nil || last.Err != nil {
		return nil, fmt.Errorf("the bounds of %s/%d are not known", at.Topic, at.Partition)
	}
	if at.Offset < first.Offset || at.Offset >= last.Offset {
		return nil, errValueLost
	}
	cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{at.Topic: {at.Partition: kgo.NewOffset().At(at.Offset)}})
	for {
		fetches := cl.PollRecords(ctx, 1)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %v: %w", at, err)
		}
		for _, e := range fetches.Errors() {
			return nil, fmt.Errorf("read %v: %w", at, e.Err)
		}
		for _, rec := range fetches.Records() {
			if rec.Offset != at.Offset {
				return nil, errValueLost // compaction took it
			}
			return rec.Value, nil
		}
	}
}
