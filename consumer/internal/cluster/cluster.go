package cluster

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster asks the brokers of a cluster through a client. Its methods are safe for concurrent use.
type Cluster struct {
	client *kgo.Client
	admin  *kadm.Client
}

// New returns a Cluster that asks through client. The caller closes client.
func New(client *kgo.Client) *Cluster { return &Cluster{client, kadm.NewClient(client)} }

// Topic is a topic as a broker describes it.
type Topic struct {
	ID         kadm.TopicID // zero where the brokers have none (before Kafka 2.8)
	Partitions int32
	Err        error
}

// Describe asks a broker about topics. A topic's own error is in its Err: UnknownTopicOrPartition
// if the broker does not list it. Describe does not use kadm, whose answer may be some seconds old,
// and is one error for all topics if one of them may not be described.
func (c *Cluster) Describe(ctx context.Context, topics []string) (map[string]Topic, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = kmsg.StringPtr(t)
		req.Topics = append(req.Topics, rt)
	}
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return nil, fmt.Errorf("metadata of topics: %w", err)
	}
	now := make(map[string]Topic, len(topics))
	for _, t := range topics {
		now[t] = Topic{Err: kerr.UnknownTopicOrPartition}
	}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			now[*t.Topic] = Topic{t.TopicID, int32(len(t.Partitions)), kerr.ErrorForCode(t.ErrorCode)}
		}
	}
	return now, nil
}
