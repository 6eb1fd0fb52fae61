package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// offsetsOf asks for a group's stable offsets: those of an open transaction that may still commit are waited for, not guessed at. It
// names the partitions: of a topic that may not be seen a broker says nothing where it is asked for all, as if there were no offset.
func (c *Consumer) offsetsOf(ctx context.Context, group string, partitions map[string][]int32) groupOffsets {
	found := groupOffsets{group: group, at: map[topicPartition]kgo.EpochOffset{}, refused: map[topicPartition]error{}}
	if len(partitions) == 0 {
		return found
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for topic, ps := range partitions {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.Partitions = topic, ps
		g.Topics = append(g.Topics, t)
	}
	req.Groups = append(req.Groups, g)
	resp, err := req.RequestWith(ctx, c.retryCl)
	switch {
	case err != nil:
		found.err = err
		return found
	case len(resp.Groups) != 1:
		found.err = errors.New("the broker answers for no group")
		return found
	}
	err = cmp.Or(kerr.ErrorForCode(resp.ErrorCode), kerr.ErrorForCode(resp.Groups[0].ErrorCode))
	if errors.Is(err, kerr.GroupIDNotFound) { // it is new, or has been away for so long that it is forgotten
		for topic, ps := range partitions {
			for _, p := range ps {
				found.at[topicPartition{topic, p}] = kgo.EpochOffset{Epoch: -1, Offset: -1}
			}
		}
		return found
	}
	found.err = err
	for _, t := range resp.Groups[0].Topics {
		for _, p := range t.Partitions {
			at := topicPartition{t.Topic, p.Partition}
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				found.refused[at] = err
				continue
			}
			found.at[at] = kgo.EpochOffset{Epoch: p.LeaderEpoch, Offset: p.Offset}
		}
	}
	return found
}

// committedOf asks for the group's offsets on the sources of lanes.
func (c *Consumer) committedOf(ctx context.Context, lanes []*lane) func(*lane) (kgo.EpochOffset, error) {
	ctx, cancel := context.WithTimeout(ctx, offsetsTimeout)
	defer cancel()
	inGroup := c.offsetsOf(ctx, c.cfg.Group, sourcesOf(lanes))
	return func(l *lane) (kgo.EpochOffset, error) { return inGroup.of(topicPartition{l.topic, l.partition}) }
}

// bounds asks where the logs of topics start and end. It returns little later than ctx ends. kgo
// may not: what waits behind another request to the same broker does not look at its context.
func (c *Consumer) bounds(ctx context.Context, topics ...string) (bounds, error) {
	if len(topics) == 0 {
		return bounds{}, nil
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(timestampSlack, func() { close(late) }) })()
	came := make(chan bounds, 1)
	go func() { came <- c.askBounds(ctx, topics) }() // ends with the client at the latest
	select {
	case b := <-came:
		return b, b.err
	case <-late:
		err := fmt.Errorf("list of offsets: no broker answered in time: %w", context.Cause(ctx))
		return bounds{err: err}, err
	}
}

// askBounds does so for as long as kgo takes.
func (c *Consumer) askBounds(ctx context.Context, topics []string) (b bounds) {
	// At the same time: a broker that is silent until ctx ends would leave no time for the second.
	var wg sync.WaitGroup
	var endErr error
	wg.Go(func() {
		// The high watermark, whatever the isolation level: an open transaction's records are there, if not to be read yet.
		b.end, endErr = c.admin.ListEndOffsets(ctx, topics...)
	})
	var startErr error
	b.start, startErr = c.admin.ListStartOffsets(ctx, topics...)
	wg.Wait()
	// What a broker that is away leads is missing in the answers; the others' partitions go on.
	if startErr != nil && !isPartial(startErr) {
		b.err = fmt.Errorf("list of start offsets: %w", startErr)
	} else if endErr != nil && !isPartial(endErr) {
		b.err = fmt.Errorf("list of end offsets: %w", endErr)
	}
	return b
}

// clampToLog returns where a partition is to be read from whose committed offset is at, and what counts as committed of it. A
// partition whose log nobody answers for, since it has no leader, is believed: it must not keep the others from their start.
func (c *Consumer) clampToLog(b bounds, topic string, partition int32, at int64) (position, committed int64) {
	start, end, err := b.of(topic, partition)
	switch {
	case err != nil:
		c.log.Warn("siding: a committed offset could not be compared with its log", "topic", topic, "partition", partition, "committed", at, "error", err)
		return at, at
	case at > end:
		c.log.Error("siding: the committed offset lies beyond the log's end, so the log is not the one that it was; reading it from its start",
			"topic", topic, "partition", partition, "committed", at, "start", start, "end", end)
		return start, -1
	case at < start:
		c.expired(topic, partition, start-at)
		return start, at
	}
	return at, at
}

// expired says that retention took records before they were read.
func (c *Consumer) expired(topic string, partition int32, n int64) {
	c.log.Error("siding: records were deleted by retention before they were read", "topic", topic, "partition", partition, "records_at_most", n)
	c.countExpired(topic, n)
}

// offsetsTimeout bounds the look at the logs of all positions that a poll found outside, which takes part of the loop's turn.
const offsetsTimeout = 5 * time.Second

// timestampSlack is how much later a look ends that kgo does not end: the answers of the brokers that
// are there come with the end of its context, for which the others were waited.
const timestampSlack = 100 * time.Millisecond

// describe asks a broker about topics. kadm would answer from what it heard some seconds ago, and with one error for all where one
// topic may not be described.
func (c *Consumer) describe(ctx context.Context, topics []string) (map[string]topicState, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.retryCl)
	if err != nil {
		return nil, fmt.Errorf("metadata of topics: %w", err)
	}
	now := make(map[string]topicState, len(topics))
	for _, t := range topics {
		now[t] = topicState{err: kerr.UnknownTopicOrPartition}
	}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			now[*t.Topic] = topicState{t.TopicID, int32(len(t.Partitions)), kerr.ErrorForCode(t.ErrorCode)}
		}
	}
	return now, nil
}

// topicState is a topic as a broker describes it.
type topicState struct {
	id         kadm.TopicID // zero where the brokers have none (before Kafka 2.8)
	partitions int32
	err        error
}
