package consumer_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// A consumer was in no group, since the coordinator refused it. It had no lanes, and its health was
// OK.
func TestHealth_OfAConsumerInNoGroupIsNotOK(t *testing.T) {
	each(t, protocols, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(fine)
		cfg.Kafka = opts
		c := k.Run(cfg)
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(time.Hour) // idle, with nothing to commit
		if h := c.Health(); !h.OK || !h.Group.Joined {
			t.Fatalf("health of an idle member is %+v", h)
		}
		fault := k.Cluster.Fault(kfake.Fault{
			Keys:     []kmsg.Key{kmsg.JoinGroup, kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat},
			TopLevel: true, Count: -1, Err: kerr.GroupAuthorizationFailed,
		})
		time.Sleep(30 * time.Second)
		if h := c.Health(); !h.OK || h.Group.Joined {
			t.Errorf("health is %+v while the consumer has been joining for 30 s; want joining, and OK still", h)
		}
		time.Sleep(2 * time.Minute)
		if h := c.Health(); h.OK || h.Group.Joined || !strings.Contains(h.Group.Why, "GROUP_AUTHORIZATION_FAILED") {
			t.Errorf("health is %+v while the coordinator refuses the member; want joining, since it may not, and not OK", h)
		}
		fault.Remove()
		k.Handled(k.Produce(many(1)...)[0], 1)
		if h := c.Health(); !h.OK || !h.Group.Joined || h.Group.Why != "" {
			t.Errorf("health is %+v once the member is back", h)
		}
	})
}

// A consumer that had ended seemed to join, and its health was not OK a minute and a half later.
func TestHealth_OfAConsumerThatEndedIsOK(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		c := k.Run(config(fine))
		k.Handled(k.Produce(many(1)...)[0], 1)
		stop(t, c)
		time.Sleep(time.Hour)
		if h := c.Health(); !h.OK || h.Group != (consumer.GroupHealth{}) {
			t.Errorf("health is %+v an hour after the end; want OK, and in no group", h)
		}
	})
}

// No commit was accepted for ten minutes, and health was OK.
func TestHealth_OfCommitsThatFailIsNotOK(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		c := k.Run(config(fine))
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(30 * time.Second)
		if h := c.Health(); !h.OK || h.Group.CommitsFailSince.IsZero() {
			t.Errorf("health is %+v after 30 s without a commit; want to hear of it, and OK still", h)
		}
		time.Sleep(2 * time.Minute)
		if h := c.Health(); h.OK || !strings.Contains(h.Group.CommitError, "TOPIC_AUTHORIZATION_FAILED") {
			t.Errorf("health is %+v while no commit is accepted", h)
		}
		fault.Remove()
		time.Sleep(time.Second)
		if h := c.Health(); !h.OK || !h.Group.CommitsFailSince.IsZero() || h.Group.CommitError != "" {
			t.Errorf("health is %+v once commits are accepted", h)
		}
	})
}

// The consumer lost the permission to read a partition. Like an idle partition it delivered
// nothing, and its lane seemed to run. kgo repeated the refused fetch at once, hundreds of times a
// second, whatever the reason.
func TestHealth_NamesAPartitionThatCannotBeRead(t *testing.T) {
	each(t, cases.Cross(sourceAndTier, map[string]*kerr.Error{
		"READ": kerr.TopicAuthorizationFailed, "server": kerr.UnknownServerError, "record": kerr.InvalidRecord,
		"codec": kerr.UnsupportedCompressionType, "topic": kerr.InvalidTopicException,
	}), 2, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[string, *kerr.Error]) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{tier1}
		cfg.Kafka = []kgo.Opt{kgo.DisableFetchSessions()}
		c := k.Run(cfg)
		handledOnce(k, k.Produce(many(10)...))
		time.Sleep(time.Minute)
		var deny atomic.Bool
		deny.Store(true)
		refused := refuse(k, tt.A, 1, tt.B, &deny)
		blocked := func() bool { h := c.Health(); return h.Lanes[1].State == consumer.StateBlocked }
		eventually(t, "health reports it", blocked)
		h := c.Health()
		if why := h.Lanes[1].Why; h.OK || h.Lanes[0].State == consumer.StateBlocked || !strings.HasPrefix(why, tt.A+"/1 cannot be read from offset ") || !strings.Contains(why, tt.B.Message) {
			t.Errorf("health is OK %v, with %+v", h.OK, h.Lanes)
		}
		time.Sleep(time.Minute)
		if n := refused.Load(); n < 5 || n > 12 {
			t.Errorf("%d fetches were refused in more than a minute, want one after 1 s, 2, 4, 8 and each 15", n)
		}
		deny.Store(false)
		handledOnce(k, k.Produce(many(10)...))
		time.Sleep(2 * time.Minute)
		isOK(t, c)
	})
}

// A batch that cannot be decompressed was fetched again at once, thousands of times a second. Once
// the group's offset stands behind it, the lane goes on.
func TestHealth_NamesABatchThatCannotBeRead(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cl := client(t, k, kgo.WithCompressor(broken{}))
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: make([]byte, 1000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		records := k.Produce(many(2)...)
		fetches := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Count: -1, Observe: true})
		c := k.Run(config(busyOnce))
		time.Sleep(time.Minute)
		if h := c.Health(); h.OK || !strings.Contains(h.Lanes[0].Why, "orders/0 cannot be read from offset 0: ") || !strings.Contains(h.Lanes[0].Why, "docs/operations.md") {
			t.Errorf("health is OK %v, with %+v", h.OK, h.Lanes)
		}
		if n := fetches.Hits(); n > 40 {
			t.Errorf("%d fetches in a minute", n)
		}
		stop(t, c)
		setCommitted(t, k, "orders", 1)
		c = k.Run(config(busyOnce))
		handledOnce(k, records)
		isOK(t, c)
	})
}

// A quota let a copy pass each 15 s. The lane was blocked for want of replicas from the tenth
// second on, and ran again with each copy.
func TestHealth_NamesAThrottleAndDoesNotFlap(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Produce(many(120)...)
		cfg := config(func(context.Context, *kgo.Record) error {
			time.Sleep(time.Second)
			return classify.Retryable(errBusy)
		})
		cfg.Policy.Tiers = []time.Duration{24 * time.Hour}
		cfg.Policy.Breaker.Off = true
		var throttles atomic.Bool
		throttles.Store(true)
		k.Cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			produce := req.(*kmsg.ProduceRequest)
			if !throttles.Load() {
				return nil, nil, false
			}
			resp := produce.ResponseKind().(*kmsg.ProduceResponse)
			resp.ThrottleMillis = 15_000
			for _, asked := range produce.Topics {
				rt := kmsg.NewProduceResponseTopic()
				rt.Topic, rt.TopicID = asked.Topic, asked.TopicID
				for _, p := range asked.Partitions {
					rp := kmsg.NewProduceResponseTopicPartition()
					rp.Partition = p.Partition
					rt.Partitions = append(rt.Partitions, rp)
				}
				resp.Topics = append(resp.Topics, rt)
			}
			return resp, nil, true
		})
		c := k.Run(cfg)
		named := 0
		for range 120 {
			time.Sleep(time.Second)
			h := c.Health()
			if l := h.Lanes[0]; !h.OK || l.State == consumer.StateBlocked {
				t.Fatalf("health is OK %v, with %+v", h.OK, l)
			} else if strings.HasPrefix(l.Why, "broker 0 throttles this process since ") && strings.Contains(l.Why, "by 15s at last") {
				named++
			}
		}
		if named < 100 {
			t.Errorf("health named the throttle at %d of 120 looks", named)
		}
		throttles.Store(false)
		time.Sleep(time.Minute)
		if l := c.Health().Lanes[0]; l.Why != "waiting until records are due" {
			t.Errorf("the throttle is over, and health has %+v", l)
		}
	})
}

// broken writes what looks compressed.
type broken struct{}

func (broken) Compress(*bytes.Buffer, []byte, ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	return []byte("this is no gzip"), kgo.CodecGzip
}

// Sessions that ended soon after they began, again and again, left health OK for ever: each join
// began to count anew. Nothing was consumed.
func TestHealth_OfAMemberThatIsLostAgainAndAgainIsNotOK(t *testing.T) {
	table := cases.Cross(balancers, map[string][]kmsg.Key{"no heartbeat is accepted": {kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat}})
	table["no offset is answered"] = cases.Pair[[]kgo.Opt, []kmsg.Key]{A: nil, B: []kmsg.Key{kmsg.OffsetFetch}}
	each(t, table, 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[[]kgo.Opt, []kmsg.Key]) {
		cfg := config(fine)
		cfg.Kafka, cfg.DrainTimeout = c.A, time.Second
		member := k.Run(cfg)
		time.Sleep(time.Hour)
		fault := k.Cluster.Fault(kfake.Fault{Keys: c.B, Count: -1, Err: kerr.UnknownServerError})
		expel(t, k, 0)
		time.Sleep(time.Minute)
		isOK(t, member)
		time.Sleep(5 * time.Minute)
		for range 100 {
			if h := member.Health(); h.OK || !strings.Contains(h.Group.Why, "UNKNOWN_SERVER_ERROR") {
				t.Fatalf("health is OK %v, with %+v, while each session ends at once", h.OK, h.Group)
			}
			time.Sleep(731 * time.Millisecond)
		}
		fault.Remove()
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(2 * time.Minute)
		isOK(t, member)
		if h := member.Health(); h.Group.Why != "" {
			t.Errorf("health is %+v once a session lasts", h.Group)
		}
	})
}

// A database hung for a minute, and the handlers that waited for it never returned. After a
// rebalance they held all slots of a member whose lanes were new: nothing ran any more, and health
// was OK.
func TestHealth_NamesHandlersThatOutlastTheirLanes(t *testing.T) {
	cases.Skip(t)
	each(t, map[string]bool{"revoked": true, "lost": false}, 2, func(t *testing.T, k *consumertest.Kafka, revoked bool) {
		const slots = 4
		hang := make(chan struct{})
		var down atomic.Bool
		down.Store(true)
		cfg := config(func(context.Context, *kgo.Record) error {
			if down.Load() {
				<-hang
			}
			return nil
		})
		cfg.Order, cfg.Concurrency, cfg.DrainTimeout = consumer.OrderNone, slots, time.Second
		cfg.Kafka = balancers["eager"] // each rebalance revokes all lanes
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Produce(many(40)...)
		time.Sleep(time.Second)
		down.Store(false)
		began := time.Now()
		if revoked {
			other := config(fine)
			other.Kafka = cfg.Kafka
			member := k.Run(other)
			time.Sleep(time.Minute)
			stop(t, member)
		} else {
			expel(t, k, 0)
		}
		time.Sleep(30 * time.Minute)
		h := c.Health()
		if h.OK || len(h.Stuck) != slots || h.Stuck[0].Topic != "orders" || h.Stuck[0].Offset > h.Stuck[1].Offset {
			t.Errorf("health is OK %v with stuck %+v, want the %d handlers that hold the slots", h.OK, h.Stuck, slots)
		}
		for _, s := range h.Stuck {
			if s.Since.Before(began) || s.Since.Sub(began) > time.Minute {
				t.Errorf("stuck since %v, want the end of its lane", s.Since)
			}
		}
		if n := log.with("level=ERROR", "handlers outlast their lanes", "handlers=4 concurrency=4 topic=orders"); n < 29 || n > 31 {
			t.Errorf("the log has it %d times in half an hour, want once a minute", n)
		}
		close(hang)
		k.Handled(k.Produce(many(1)...)[0], 1)
		time.Sleep(time.Second)
		if h := c.Health(); !h.OK || len(h.Stuck) > 0 {
			t.Errorf("health is %+v once the handlers have returned", h)
		}
	})
}

// A coordinator that refused each request of the start left the reason to the log alone.
func TestHealth_OfAStartThatIsRefusedSaysWhy(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Count: -1, Err: kerr.CoordinatorLoadInProgress})
		c := k.Begin(config(fine))
		time.Sleep(3 * time.Minute)
		if h := c.Health(); h.OK || h.Group.Joined || !strings.Contains(h.Group.Why, "COORDINATOR_LOAD_IN_PROGRESS") {
			t.Errorf("health is OK %v, with %+v; want to hear what refuses the start", h.OK, h.Group)
		}
		fault.Remove()
		k.Handled(k.Produce(many(1)...)[0], 1)
		if h := c.Health(); !h.OK || h.Group.Why != "" {
			t.Errorf("health is OK %v, with %+v after the start", h.OK, h.Group)
		}
	})
}
