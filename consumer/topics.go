package consumer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topicNow is a topic as a broker describes it.
type topicNow struct {
	id         kadm.TopicID // zero where the brokers have none (before Kafka 2.8)
	partitions int32
	err        error
}

// describe asks a broker about topics. kadm would answer from what it heard some seconds ago, and with one error for all where one
// topic may not be described.
func (c *Consumer) describe(ctx context.Context, topics []string) (map[string]topicNow, error) {
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
	now := make(map[string]topicNow, len(topics))
	for _, t := range topics {
		now[t] = topicNow{err: kerr.UnknownTopicOrPartition}
	}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			now[*t.Topic] = topicNow{t.TopicID, int32(len(t.Partitions)), kerr.ErrorForCode(t.ErrorCode)}
		}
	}
	return now, nil
}
