package consumer_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// A source was recreated while the member fetched its offsets there. kgo repeated the interrupted
// fetch in the next session, though the member no longer had the topic, and read the new topic from
// its end. When the group gave the partition to the member, the two positions overwrote each other.
// No record of the new topic ran.
func TestConsumerGroup_SourceRecreatedDuringOffsetFetch(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var fetching, lagging atomic.Bool
		var syncs atomic.Int32
		// The first session stops at the offset fetch of the former group. The second does not have
		// the topic.
		k.Cluster.ControlKey(int16(kmsg.SyncGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			n := syncs.Add(1)
			fetching.Store(n == 1)
			if n == 2 {
				time.AfterFunc(time.Second, func() { lagging.Store(false) })
			}
			return nil, nil, false
		})
		k.Cluster.ControlKey(int16(kmsg.OffsetFetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if r := req.(*kmsg.OffsetFetchRequest); r.Groups[0].Group != "before" || !fetching.Load() {
				return nil, nil, false
			}
			resp := kmsg.NewPtrOffsetFetchResponse()
			resp.Version = req.GetVersion()
			g := kmsg.NewOffsetFetchResponseGroup()
			g.Group, g.ErrorCode = "before", kerr.CoordinatorLoadInProgress.Code
			resp.Groups = append(resp.Groups, g)
			return resp, nil, true
		})
		groupClientLags(k, &lagging)
		k.Produce(many(100)...)
		cfg := config(fine)
		cfg.FormerGroups = []string{"before"}
		k.Begin(cfg)
		eventually(t, "the offsets are being fetched", fetching.Load)
		lagging.Store(true)
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		handledOnce(k, k.Produce(many(100)...))
	})
}

// A broker that assigns (KIP-848) does so as soon as the group client subscribes to the new topic.
// When the client later learns the number of partitions, kgo assigns them once more. They would
// begin a second time, beside the first.
func TestConsumerGroup_BeginsAPartitionOnce(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var lagging, assigned, named atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			r := req.(*kmsg.ConsumerGroupHeartbeatRequest)
			switch {
			case r.SubscribedTopicNames == nil:
			// the client forgot the topic, and knows the new one's id
			case len(r.SubscribedTopicNames) == 0:
				lagging.Store(true)
			case lagging.Load() && len(r.Topics) > 0: // it was given the partition
				assigned.Store(true)
				time.AfterFunc(time.Second, func() { lagging.Store(false) })
			case assigned.Load():
				named.Store(true)
			}
			return nil, nil, false
		})
		groupClientLags(k, &lagging)
		cfg := config(func(context.Context, *kgo.Record) error { time.Sleep(20 * time.Second); return nil })
		cfg.Kafka = []kgo.Opt{kgo.ServerSideBalancer()}
		k.Begin(cfg)
		k.Handled(k.Produce(many(1)...)[0], 1)
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		handledOnce(k, k.Produce(many(3)...))
		if lagging.Load() || !named.Load() {
			t.Errorf("the client was not assigned the partition before it heard of it")
		}
	})
}

// groupClientLags hides the source from the group client, the only one that asks for it alone,
// while it lags.
func groupClientLags(k *consumertest.Kafka, lagging *atomic.Bool) {
	k.Cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		if r := req.(*kmsg.MetadataRequest); len(r.Topics) != 1 || r.Topics[0].Topic == nil || *r.Topics[0].Topic != "orders" || !lagging.Load() {
			return nil, nil, false
		}
		resp := kmsg.NewPtrMetadataResponse()
		resp.Version = req.GetVersion()
		host, port, _ := net.SplitHostPort(k.Cluster.ListenAddrs()[0])
		n, _ := strconv.ParseInt(port, 10, 32)
		broker := kmsg.NewMetadataResponseBroker()
		broker.Host, broker.Port = host, int32(n)
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = kmsg.StringPtr("orders"), kerr.LeaderNotAvailable.Code
		resp.Brokers, resp.Topics = append(resp.Brokers, broker), append(resp.Topics, topic)
		return resp, nil, true
	})
}

// With Config.FormerGroups a renamed group continues from its former offsets.
func TestConsumerGroup_RenamedGoesOnWhereItWas(t *testing.T) {
	each(t, map[string]retrytopics.Naming{
		"groups share the retry topics": {},
		"the names have the group": {
			Retry: "{topic}.retry.{group}.{delay}", DLQ: "{topic}.dlq.{group}", Ledger: "{topic}.ledger.{group}",
		},
	}, 2, func(t *testing.T, k *consumertest.Kafka, naming retrytopics.Naming) {
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if attempt := consumer.DeliveryOf(ctx, r).Attempt; r.Offset%4 == 2 || r.Offset%4 == 0 && attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Group, cfg.Naming = "invoicing", naming
		cfg.Policy.Tiers = []time.Duration{tier1, time.Minute, 2 * time.Minute}
		records := k.Produce(many(40)...)
		c := k.Run(cfg)
		var parked []*kgo.Record
		for _, r := range records {
			if r.Offset%4 == 2 {
				k.Parked(r, time.Minute, "")
				parked = append(parked, r)
			} else {
				k.Handled(r, 1)
			}
		}
		k.Conserved()
		stop(t, c)

		var again ran
		cfg.Group, cfg.FormerGroups = "billing", []string{"nobody", "invoicing"}
		log := logged(&cfg)
		cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
			again.count(r)
			if consumer.DeliveryOf(ctx, r).Attempt == 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		}
		renamed := k.Run(cfg)
		for _, r := range parked {
			if m := k.Parked(r, 2*time.Minute, ""); m.Group != "billing" || m.Attempts != 3 {
				t.Errorf("the copy of %d says group %q and %d attempts, want billing and 3", r.Offset, m.Group, m.Attempts)
			}
			k.Handled(r, 1)
		}
		handledOnce(k, k.Produce(many(10)...))
		k.Conserved()
		for _, r := range records {
			want := 0
			if r.Offset%4 == 2 {
				want = 2
			}
			if n := again.times(r); n != want {
				t.Errorf("%d/%d ran %d times under the new name, want %d", r.Partition, r.Offset, n, want)
			}
		}
		log.has(t, 0, "former group still has members")
		// From here on the former group does not count: the group has its own offsets.
		stop(t, renamed)
		cfg.FormerGroups, cfg.Handler = nil, fine
		k.Run(cfg)
		handledOnce(k, k.Produce(many(10)...))
		k.Conserved()
	})
}

// The consumer logs that a former group still has members.
func TestConsumerGroup_LogsAFormerGroupWithMembers(t *testing.T) {
	each(t, protocols, 1, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(fine)
		cfg.Group, cfg.Kafka = "invoicing", opts
		k.Run(cfg)
		cfg.Group, cfg.FormerGroups = "billing", []string{"invoicing", "never"}
		log := logged(&cfg)
		k.Run(cfg)
		log.has(t, 1, "level=ERROR", "former_group=invoicing", "still has members")
		log.has(t, 0, "former_group=never")
	})
}
