package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// makeSiblings makes the topics of config's only tier, with limits.
func makeSiblings(t *testing.T, k *consumertest.Kafka, tier, dlq int) {
	t.Helper()
	k.CreateTopic("orders.retry.300ms", 2)
	k.CreateTopic("orders.dlq", 2)
	limit(t, k, "orders.retry.300ms", tier)
	limit(t, k, "orders.dlq", dlq)
}

// limit sets a topic's max.message.bytes.
func limit(t *testing.T, k *consumertest.Kafka, topic string, to int) {
	t.Helper()
	alter(t, k, topic, "max.message.bytes", fmt.Sprint(to))
}

// alter sets a config of a topic.
func alter(t *testing.T, k *consumertest.Kafka, topic, name, value string) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		resp, err := cl.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
		if err == nil {
			_, err = resp.On(topic, nil)
		}
		return err
	})
}

// growTopic gives a topic more partitions.
func growTopic(t *testing.T, k *consumertest.Kafka, topic string, to int) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		grown, err := cl.UpdatePartitions(ctx, to, topic)
		return errors.Join(err, grown.Error())
	})
}

// expireOffsets sets for how many minutes the brokers keep the offsets of a group without members.
func expireOffsets(t *testing.T, k *consumertest.Kafka, minutes string) {
	t.Helper()
	alterBroker(t, k, "offsets.retention.minutes", minutes)
}

// alterBroker changes a setting of the brokers.
func alterBroker(t *testing.T, k *consumertest.Kafka, name, value string) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		resp, err := cl.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}})
		if err == nil {
			err = resp[0].Err
		}
		return err
	})
}

func deleteRecords(t *testing.T, k *consumertest.Kafka, topic string, to int64) {
	t.Helper()
	if err := k.Cluster.DeleteRecords(topic, 0, to); err != nil {
		t.Fatal(err)
	}
}

// expel removes the group's members behind their backs, as a session timeout does.
func expel(t *testing.T, k *consumertest.Kafka, which int) {
	t.Helper()
	info := k.Cluster.GroupInfo("billing")
	if info == nil || len(info.Members) <= which {
		return
	}
	cl := client(t, k)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = "billing"
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = info.Members[which].MemberID
	req.Members = append(req.Members, m)
	if _, err := req.RequestWith(context.Background(), cl); err != nil {
		t.Logf("expel: %v", err)
	}
}

// kill ends a consumer as kill -9 does, as seen from the brokers: its last commit does not arrive,
// and it does not leave the group. No other consumer may run meanwhile.
func kill(t *testing.T, k *consumertest.Kafka, c *consumertest.Consumer) {
	t.Helper()
	var over atomic.Bool
	k.Cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		if over.Load() {
			return nil, nil, false
		}
		k.Cluster.KeepControl()
		switch req.(type) {
		case *kmsg.OffsetCommitRequest, *kmsg.LeaveGroupRequest, *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.ProduceRequest:
			return nil, errors.New("the process is dead"), true
		}
		return nil, nil, false
	})
	if err := c.Stop(); err != nil {
		t.Log(err) // a handler that ignores its context
	}
	over.Store(true)
	time.Sleep(2 * time.Minute) // the session ends
}

// content returns the records of a topic.
func content(t *testing.T, k *consumertest.Kafka, topic string) (all []*kgo.Record) {
	t.Helper()
	cl := client(t, k, kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	for int64(len(all)) < n {
		all = append(all, cl.PollFetches(context.Background()).Records()...)
	}
	return all
}

// holds checks how many records a topic has.
func holds(t *testing.T, k *consumertest.Kafka, topic string, want int) {
	t.Helper()
	if n := len(content(t, k, topic)); n != want {
		t.Errorf("%s has %d records, want %d", topic, n, want)
	}
}

// setCommitted commits an offset for the group as an operator's tool does, without being a member.
func setCommitted(t *testing.T, k *consumertest.Kafka, topic string, at int64) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		var inGroup kadm.Offsets
		inGroup.AddOffset(topic, 0, at, -1)
		return cl.CommitAllOffsets(ctx, "billing", inGroup)
	})
}

// committed waits until the group has committed the offset.
func committed(t *testing.T, k *consumertest.Kafka, topic string, partition int32, at int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d is committed on %s/%d", at, topic, partition), func() bool {
		info := k.Cluster.GroupInfo("billing")
		return info != nil && info.Commits[topic][partition].Offset == at
	})
}

// denied makes the broker deny, while on, that it knows the id of a topic, on one partition or on
// all (-1).
func denied(k *consumertest.Kafka, topic string, partition int32, on *atomic.Bool) {
	refuse(k, topic, partition, kerr.UnknownTopicID, on)
}

// refuse makes the broker refuse the fetches of a topic, while on, for one partition or for all
// (-1). It counts what it refuses.
func refuse(k *consumertest.Kafka, topic string, partition int32, why *kerr.Error, on *atomic.Bool) *atomic.Int64 {
	refused := new(atomic.Int64)
	id := k.Cluster.TopicInfo(topic).TopicID
	k.Cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		r := req.(*kmsg.FetchRequest)
		if !on.Load() || len(r.Topics) == 0 || r.Topics[0].TopicID != id {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.FetchResponse)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID = r.Topics[0].Topic, id
		for _, asked := range r.Topics[0].Partitions {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition = asked.Partition
			if partition < 0 || partition == asked.Partition {
				p.ErrorCode, p.HighWatermark = why.Code, -1
				refused.Add(1)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
		time.Sleep(100 * time.Millisecond)
		return resp, nil, true
	})
	return refused
}

// hits waits until a fault has hit n requests.
func hits(t *testing.T, fault *kfake.FaultHandle, n int) {
	t.Helper()
	if err := fault.Wait(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// joins counts the requests with which members join the group.
func joins(k *consumertest.Kafka) *kfake.FaultHandle {
	return k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Count: -1, Observe: true})
}

func endOf(k *consumertest.Kafka, topic string) (end int64) {
	for _, p := range k.Cluster.PartitionInfos(topic) {
		end += p.HighWatermark
	}
	return end
}

// provision makes the siblings of a configuration that only verifies them.
func provision(t *testing.T, k *consumertest.Kafka, cfg consumer.Config) {
	t.Helper()
	cfg.Provision.Mode = retrytopics.Create
	stop(t, k.Run(cfg))
}

// client is a client of the test's own.
func client(t *testing.T, k *consumertest.Kafka, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(k.Opts(), opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// admin changes the cluster.
func admin(t *testing.T, k *consumertest.Kafka, change func(context.Context, *kadm.Client) error) {
	t.Helper()
	cl := client(t, k)
	defer cl.Close()
	if err := change(t.Context(), kadm.NewClient(cl)); err != nil {
		t.Fatal(err)
	}
}

// produceTo writes a record to a partition that the kit's client does not know yet.
func produceTo(t *testing.T, k *consumertest.Kafka, partition int32, value string) *kgo.Record {
	t.Helper()
	cl := client(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer cl.Close()
	r := &kgo.Record{Topic: "orders", Partition: partition, Value: []byte(value)}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return r
}
