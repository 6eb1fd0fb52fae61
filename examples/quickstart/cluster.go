package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/retrytopics"
)

const partitions = 3

// cluster is the broker inside this process, or a Kafka cluster, with topics and a group for this
// run.
type cluster struct {
	name     string // for people
	opts     []kgo.Opt
	client   *kgo.Client
	admin    *kadm.Client
	group    string
	siblings retrytopics.Siblings
	embedded *kfake.Cluster // nil on a real one
	created  bool           // the source topic
}

// open connects to the cluster and creates the source topic. The caller closes the result, also
// after an error.
func open(ctx context.Context, o options, tiers []time.Duration) (c *cluster, err error) {
	c = &cluster{}
	source := "orders"
	c.group = "billing"
	if len(o.brokers) > 0 {
		var id [4]byte
		_, _ = rand.Read(id[:]) // never fails
		source = fmt.Sprintf("quickstart-%x", id)
		c.group = source
		c.name = fmt.Sprintf("brokers %v, topic and group %s", o.brokers, source)
		c.opts = []kgo.Opt{kgo.SeedBrokers(o.brokers...)}
	} else {
		c.embedded, err = kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return c, fmt.Errorf("start the embedded broker: %w", err)
		}
		c.name = "a broker inside this process"
		c.opts = []kgo.Opt{
			kgo.SeedBrokers(c.embedded.ListenAddrs()...),
			kgo.MetadataMinAge(100 * time.Millisecond), // it answers at once
			kgo.HeartbeatInterval(500 * time.Millisecond),
		}
	}
	if c.siblings, err = (retrytopics.Naming{}).Siblings(source, c.group, tiers...); err != nil {
		return c, err
	}
	if c.client, err = kgo.NewClient(append(c.opts[:len(c.opts):len(c.opts)], kgo.ProducerLinger(0))...); err != nil {
		return c, err
	}
	c.admin = kadm.NewClient(c.client)
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	if err := c.client.Ping(ctx); err != nil {
		return c, fmt.Errorf("no broker answers at %v: %w", o.brokers, err)
	}
	if _, err := c.admin.CreateTopic(ctx, partitions, -1, nil, source); err != nil {
		return c, fmt.Errorf("create topic %q: %w", source, err)
	}
	c.created = true
	err = c.known(ctx)
	return c, err
}

// known waits until every broker knows the source topic, which the controller announces with a
// delay.
func (c *cluster) known(ctx context.Context) error {
	for _, broker := range c.client.DiscoveredBrokers() {
		for {
			req := kmsg.NewPtrMetadataRequest()
			topic := kmsg.NewMetadataRequestTopic()
			topic.Topic = &c.siblings.Source
			req.Topics = append(req.Topics, topic)
			resp, err := broker.RetriableRequest(ctx, req)
			if err == nil && led(resp.(*kmsg.MetadataResponse)) {
				break
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("topic %q has no leader on each partition: %w", c.siblings.Source, errors.Join(ctx.Err(), err))
			}
		}
	}
	return nil
}

// led reports whether all partitions in the answer have leaders.
func led(resp *kmsg.MetadataResponse) bool {
	n := 0
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Leader >= 0 {
				n++
			}
		}
	}
	return n == partitions
}

// tierTopics returns the retry topics, shortest delay first.
func (c *cluster) tierTopics() (topics []string) {
	for _, t := range c.siblings.Tiers {
		topics = append(topics, t.Topic)
	}
	return topics
}

// allCommitted reports whether the group has committed all records of the source and the tiers.
func (c *cluster) allCommitted(ctx context.Context) bool {
	ends, err := c.admin.ListEndOffsets(ctx, append(c.tierTopics(), c.siblings.Source)...)
	if err != nil || ends.Error() != nil {
		return false
	}
	committed, err := c.admin.FetchOffsets(ctx, c.group)
	if err != nil {
		return false
	}
	all := true
	ends.Each(func(end kadm.ListedOffset) {
		o, ok := committed.Lookup(end.Topic, end.Partition)
		all = all && ok && o.At >= end.Offset
	})
	return all
}

// close takes everything away that open and the consumer created, unless it is to be kept.
func (c *cluster) close(keep bool) error {
	var problems []error
	if c.client != nil {
		if c.embedded == nil && c.created && !keep {
			problems = append(problems, c.remove())
		}
		c.client.Close()
	}
	if c.embedded != nil {
		c.embedded.Close()
	}
	return errors.Join(problems...)
}

func (c *cluster) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var problems []error
	deleted, err := c.admin.DeleteTopics(ctx, append(c.siblings.Topics(), c.siblings.Source)...)
	if err != nil {
		problems = append(problems, fmt.Errorf("delete topic %s and its siblings: %w", c.siblings.Source, err))
	}
	for _, d := range deleted.Sorted() {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			problems = append(problems, fmt.Errorf("delete topic %s: %w", d.Topic, d.Err))
		}
	}
	if _, err := c.admin.DeleteGroup(ctx, c.group); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		problems = append(problems, fmt.Errorf("delete group %s: %w", c.group, err))
	}
	return errors.Join(problems...)
}
