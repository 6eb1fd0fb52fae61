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

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// A source is made anew while the member fetches its offsets on it. The fetch was cut off, and kgo made it again in the next session,
// though the member had given the topic back by then: it read the new topic from its end, and when the group gave the partition to the
// member, the two positions got into each other's way. No record of the new topic ran.
func TestASourceThatIsMadeAnewWhileItsOffsetsAreFetchedIsReadFromItsStart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var fetching, lagging atomic.Bool
		var syncs atomic.Int32
		// The first session does not get beyond what the former group has committed. The second is without the topic.
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

// A broker that assigns (KIP-848) does so as soon as the group client subscribes to the new topic again. When the client hears later
// how many partitions it has, kgo names them once more: they would begin a second time, beside the first.
func TestAPartitionIsBegunOnceThoughTheClientHearsOfItAfterItWasAssigned(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var lagging, assigned, named atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.ConsumerGroupHeartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			r := req.(*kmsg.ConsumerGroupHeartbeatRequest)
			switch {
			case r.SubscribedTopicNames == nil:
			case len(r.SubscribedTopicNames) == 0: // the client forgot the topic, and knows the new one's id
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

// groupClientLags has the group client, which asks for nothing but the source, not hear of it while it lags.
func groupClientLags(k *consumertest.Kafka, lagging *atomic.Bool) {
	k.Cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		if r := req.(*kmsg.MetadataRequest); len(r.Topics) != 1 || *r.Topics[0].Topic != "orders" || !lagging.Load() {
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
