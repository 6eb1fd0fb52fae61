package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

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

	leaders map[int32]int32 // by partition; -1: the partition has none
}

// leader returns the broker that leads a partition.
func (t Topic) leader(partition int32) (int32, error) {
	leader, ok := t.leaders[partition]
	switch {
	case t.Err != nil:
		return 0, t.Err
	case !ok:
		return 0, kerr.UnknownTopicOrPartition
	case leader < 0:
		return 0, kerr.LeaderNotAvailable
	}
	return leader, nil
}

// Describe asks a broker about topics. A topic's own error is in its Err: UnknownTopicOrPartition
// if the broker does not list it. Describe does not use kadm, whose answer may be some seconds old,
// and is one error for all topics if one of them may not be described.
func (c *Cluster) Describe(ctx context.Context, topics []string) (map[string]Topic, error) {
	answer, err := c.ask(ctx, func() kmsg.Request {
		req := kmsg.NewPtrMetadataRequest()
		for _, t := range topics {
			rt := kmsg.NewMetadataRequestTopic()
			rt.Topic = kmsg.StringPtr(t)
			req.Topics = append(req.Topics, rt)
		}
		return req
	})
	if err != nil {
		return nil, fmt.Errorf("metadata of topics: %w", err)
	}
	now := make(map[string]Topic, len(topics))
	for _, t := range topics {
		now[t] = Topic{Err: kerr.UnknownTopicOrPartition}
	}
	for _, t := range answer.(*kmsg.MetadataResponse).Topics {
		if t.Topic == nil {
			continue
		}
		leaders := make(map[int32]int32, len(t.Partitions))
		for _, p := range t.Partitions {
			leaders[p.Partition] = p.Leader
		}
		now[*t.Topic] = Topic{t.TopicID, int32(len(t.Partitions)), kerr.ErrorForCode(t.ErrorCode), leaders}
	}
	return now, nil
}

// askNext is how long ask waits for a broker before it asks the next one as well.
const askNext = time.Second

// ask sends a request that any broker can answer, and returns the first answer. kgo chooses a
// broker. If that is silent, ask asks the others too, one after the other: kgo would await the
// silent one for 10 s and more. ask returns when ctx ends, though kgo may go on waiting; that ends
// with the client at the latest.
func (c *Cluster) ask(ctx context.Context, req func() kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		resp kmsg.Response
		err  error
	}
	brokers := c.client.DiscoveredBrokers()
	rand.Shuffle(len(brokers), func(i, j int) { brokers[i], brokers[j] = brokers[j], brokers[i] })
	answers := make(chan answer, 1+len(brokers))
	begin := func(request func(context.Context, kmsg.Request) (kmsg.Response, error)) {
		go func() {
			resp, err := request(ctx, req())
			answers <- answer{resp, err}
		}()
	}
	begin(c.client.Request)
	open, next := 1, time.NewTicker(askNext)
	defer next.Stop()
	for {
		select {
		case a := <-answers:
			if open--; a.err == nil || open == 0 {
				return a.resp, a.err
			}
		case <-next.C:
			if len(brokers) > 0 {
				begin(brokers[0].Request)
				brokers, open = brokers[1:], open+1
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("no broker answered in time: %w", context.Cause(ctx))
		}
	}
}
