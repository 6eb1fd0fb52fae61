package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// answerLooks answers a consumer's polls of its topics in the broker's place, while on.
func answerLooks(k *consumertest.Kafka, on *atomic.Bool, answer func(*kmsg.MetadataResponseTopic) error) {
	k.Cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.Cluster.KeepControl()
		r := req.(*kmsg.MetadataRequest)
		if !on.Load() || len(r.Topics) < 3 { // else it is not the look's
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.MetadataResponse)
		for _, asked := range r.Topics {
			t := kmsg.NewMetadataResponseTopic()
			t.Topic = asked.Topic
			if err := answer(&t); err != nil {
				return nil, err, true
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
}

// A fetch is refused once, and the poll that follows learns nothing. The topic was paused for the
// suspicion, and stayed paused for ever when the next poll found it unchanged.
func TestConsumerTopics_SuspicionStandsUntilResolved(t *testing.T) {
	each(t, map[string]func(*kmsg.MetadataResponseTopic) error{
		"the look finds nothing amiss": nil,
		"the look fails":               func(*kmsg.MetadataResponseTopic) error { return errors.New("connection refused") },
		"the look finds no leader":     func(t *kmsg.MetadataResponseTopic) error { t.ErrorCode = kerr.LeaderNotAvailable.Code; return nil },
	}, 1, func(t *testing.T, k *consumertest.Kafka, answer func(*kmsg.MetadataResponseTopic) error) {
		cfg := config(fine)
		log := logged(&cfg)
		cfg.Kafka = []kgo.Opt{kgo.DisableFetchSessions()}
		k.Run(cfg)
		handledOnce(k, k.Produce(many(5)...))
		time.Sleep(31 * time.Second)
		var deny, blur atomic.Bool
		denied(k, "orders", -1, &deny)
		if answer != nil {
			answerLooks(k, &blur, answer)
		}
		blur.Store(true)
		deny.Store(true)
		eventually(t, "a fetch is denied for good", func() bool { return log.with("siding: a fetch failed", "topic=orders") > 0 })
		time.Sleep(700 * time.Millisecond) // the look for it
		deny.Store(false)
		blur.Store(false)
		handledOnce(k, k.Produce(many(5)...))
	})
}

// A broker that lags denies a topic that was not recreated. Running records may finish and are
// committed before the client forgets the topic. They were cancelled, and ran again, on all
// partitions every five seconds.
func TestConsumerTopics_ForgottenSourceIsRevokedInOrder(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		var deny atomic.Bool
		var runs, cancelled atomic.Int32
		cfg := config(func(ctx context.Context, _ *kgo.Record) error {
			runs.Add(1)
			select {
			case <-ctx.Done():
				cancelled.Add(1)
				return ctx.Err()
			case <-time.After(2 * time.Second):
				return nil
			}
		})
		cfg.Kafka, cfg.CommitInterval = []kgo.Opt{kgo.DisableFetchSessions()}, time.Second
		k.Run(cfg)
		denied(k, "orders", 0, &deny)
		records := k.Produce(many(100)...)
		time.Sleep(5 * time.Second)
		deny.Store(true)
		time.Sleep(30 * time.Second)
		deny.Store(false)
		handledOnce(k, records)
		if n := cancelled.Load(); n != 0 || int(runs.Load()) != len(records) {
			t.Errorf("%d runs of %d records, %d cancelled; want each once", runs.Load(), len(records), n)
		}
	})
}

// A restarting cluster denies a topic for some seconds. A drained tier was retired for it, and not
// read again.
func TestDrainedTier_DeniedForSecondsIsStillDrained(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{time.Minute}
		log := logged(&cfg)
		first := k.Produce(many(20)...)
		runsUntilParked(t, k, cfg, time.Minute, first...)
		cfg.Policy.Tiers = []time.Duration{tier1}
		k.Run(cfg)
		var blur atomic.Bool
		answerLooks(k, &blur, func(t *kmsg.MetadataResponseTopic) error { t.ErrorCode = kerr.UnknownTopicOrPartition.Code; return nil })
		blur.Store(true)
		time.Sleep(20 * time.Second)
		blur.Store(false)
		handledOnce(k, first)
		k.Conserved()
		log.has(t, 0, "a drained retry topic was deleted")
	})
}

// kgo holds back a commit for a topic whose id has changed, and answers in the broker's place. That
// is the only sign if the topic was recreated before the first poll, and its lane is full and waits
// for the commit of its start. The lane waited for ever.
func TestConsumerTopics_WithheldCommitShowsARecreation(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Produce(many(50)...)
		cfg := config(fine)
		cfg.MaxInFlight, cfg.Kafka = 10, []kgo.Opt{kgo.MetadataMaxAge(time.Second)}
		log := logged(&cfg)
		blind := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Count: -1, When: func(req kmsg.Request) bool {
			// all topics of the consumer: it is the request of a poll
			return len(req.(*kmsg.MetadataRequest).Topics) == 4
		}})
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.UnknownServerError})
		c := k.Begin(cfg)
		eventually(t, "the lane is full and waits", func() bool {
			l := c.Health().Lanes
			return len(l) == 1 && l[0].State == consumer.StateStarting && l[0].Queued >= cfg.MaxInFlight
		})
		k.DeleteTopic("orders")
		k.CreateTopic("orders", 1)
		eventually(t, "the client keeps its commits back", func() bool { return log.with("offsets not committed", "UNKNOWN_TOPIC_ID") > 0 })
		refused.Remove()
		blind.Remove()
		handledOnce(k, k.Produce(many(5)...))
	})
}
