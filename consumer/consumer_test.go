package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
)

// The clients that are made from one of kgo's options write to its value. The race detector fails
// this test.
func TestNew_ConsumersMayShareTheirOptions(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		opts := []kgo.Opt{kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression())}
		for _, group := range []string{"billing", "audit"} {
			k.Begin(consumer.Config{
				Kafka: opts, Group: group, Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{time.Second}},
				Handler: func(context.Context, *kgo.Record) error { return nil },
			})
		}
		k.Handled(k.Produce(&kgo.Record{Topic: "orders"})[0], 2)
	})
}

// While no copy was acknowledged, health was 503, and the log ended with parked records.
func TestConsumer_LogsThatLanesAreBlocked(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{5 * time.Second}
		log := logged(&cfg)
		c := k.Run(cfg)
		// kgo repeats such a write by itself, so nothing but silence shows it.
		silent := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Count: -1, Err: kerr.NotEnoughReplicas})
		records := k.Produce(append(onPartition(0, "v", 3), onPartition(1, "v", 3)...)...)
		time.Sleep(40 * time.Second)
		log.has(t, 1, "lanes are blocked")
		log.has(t, 1, `level=WARN msg="siding: lanes are blocked" group=billing lanes=2 blocked_now=2 since=`, "why=\"copies are not acknowledged", `partitions=orders/0-1`)
		log.has(t, 0, "no longer blocked")
		silent.Remove()
		handledOnce(k, records)
		time.Sleep(5 * time.Second)
		log.has(t, 1, "lanes are blocked")
		log.has(t, 1, `level=INFO msg="siding: lanes are no longer blocked" group=billing lanes=2 blocked_now=0 lasted=4`, `partitions=orders/0-1`)
		stop(t, c)
	})
}

// A lane that is revoked while it is blocked is still blocked under its next owner, perhaps.
func TestConsumer_LogsNoEndOfBlockedLanesThatAreRevoked(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Policy.Tiers = []time.Duration{5 * time.Second}
		log := logged(&cfg)
		c := k.Run(cfg)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Count: -1, Err: kerr.NotEnoughReplicas})
		k.Produce(append(onPartition(0, "v", 3), onPartition(1, "v", 3)...)...)
		time.Sleep(40 * time.Second)
		log.has(t, 1, "lanes are blocked", "lanes=2")
		cfg.Logger = nil
		second := k.Run(cfg)
		time.Sleep(time.Minute)
		log.has(t, 1, "lanes revoked", "lanes=1 lanes_now=1")
		stop(t, c)
		stop(t, second)
		log.has(t, 0, "no longer blocked")
	})
}

// Ready was closed as soon as the first topic's lanes ran, while another's were still being opened.
func TestConsumer_ReadyAwaitsTheLanesOfAllTopics(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("payments", 2)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "payments", Count: 5, Err: kerr.TopicAuthorizationFailed})
		cfg := config(fine)
		cfg.Topics = []string{"orders", "payments"}
		c := k.Run(cfg)
		lanes := c.Health().Lanes
		for _, l := range lanes {
			if l.State == consumer.StateStarting {
				t.Errorf("ready while lane %s/%d is starting", l.Topic, l.Partition)
			}
		}
		if len(lanes) != 4 {
			t.Errorf("ready with %d lanes, want 4", len(lanes))
		}
	})
}

// A lane that cannot start delays Ready by at most a minute, even if it is the only lane.
func TestConsumer_ReadyAwaitsNoLaneThatCannotStart(t *testing.T) {
	each(t, map[string]kfake.Fault{
		"its start cannot be asked for": {Keys: []kmsg.Key{kmsg.OffsetFetch}, Topic: "payments"},
		"its start cannot be committed": {Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "payments"},
		"none can start":                {Keys: []kmsg.Key{kmsg.OffsetCommit}},
	}, 2, func(t *testing.T, k *consumertest.Kafka, fault kfake.Fault) {
		k.CreateTopic("payments", 1)
		fault.Count, fault.Err = -1, kerr.TopicAuthorizationFailed
		k.Cluster.Fault(fault)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "payments"}
		c := k.Begin(cfg)
		time.Sleep(30 * time.Second)
		if c.Health().Started {
			t.Error("ready after half a minute, want it to wait for a lane that may yet start")
		}
		time.Sleep(time.Minute)
		if h := c.Health(); !h.Started || h.OK {
			t.Errorf("after a minute and a half it is ready: %v, and OK: %v; want ready, and not OK", h.Started, h.OK)
		}
		waitsBecause(t, c, "payments", 0, "")
	})
}

// Nothing is lost while brokers refuse, hang up and restart.
func TestConsumer_LosesNothingUnderFaults(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, seed := range cases.Seeds(12) {
		for name, opts := range balancers {
			t.Run(fmt.Sprintf("%s/seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) { chaos(t, k, seed, opts, false) })
			})
		}
	}
}

// Leaders move in real time only. kgo asks a former leader again and again until its metadata is
// fresh, and virtual time does not pass meanwhile.
func TestConsumer_LosesNothingWhileLeadersMove(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			// The embedded broker forgets joining members when the group's coordinator moves: their
			// requests time out.
			soon := []kgo.Opt{kgo.RebalanceTimeout(6 * time.Second), kgo.RequestTimeoutOverhead(2 * time.Second)}
			chaos(t, consumertest.Start(t), 1000+seed, soon, true)
		})
	}
}

// The brokers freeze for one of two members, for less and for more than its session. When they
// thaw they handle what it sent meanwhile: commits and copies, perhaps of lanes that the other
// member owns by now.
func TestConsumer_LosesNothingWhenBrokersFreezeAndThaw(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(protocols, map[string]time.Duration{"1s": time.Second, "25s": 25 * time.Second, "5m": 5 * time.Minute}), 4,
		func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[[]kgo.Opt, time.Duration]) {
			k.Patience = 10 * time.Minute
			watchCommits(t, k)
			frost := newFreezer(t, k)
			cfg := config(handle)
			cfg.Kafka = append([]kgo.Opt{kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second)}, tt.A...)
			k.Run(cfg)
			cfg.Kafka = append([]kgo.Opt{frost.dialer()}, cfg.Kafka...)
			frozen := k.Run(cfg)
			eventually(t, "the second member has lanes", func() bool { return len(frozen.Health().Lanes) == 2 })
			for round := range 3 {
				inBatches(k, 5, 40, 100*time.Millisecond)
				frost.freeze()
				inBatches(k, 5, 40, 100*time.Millisecond)
				time.Sleep(tt.B)
				frost.thaw()
				inBatches(k, 5, 40, 100*time.Millisecond)
				k.Conserved()
				// The broker also handles joins that the member gave up: others wait for these.
				time.Sleep(2 * time.Minute)
				eventually(t, fmt.Sprintf("the group is whole again after frost %d", round+1), func() bool {
					h := frozen.Health()
					return h.OK && h.Group.Joined
				})
			}
		})
}

// A handler hangs in one lane, and ignores its timeout. The other lanes keep their pace, and so do
// the other keys of its own where the order allows it. Health names the lane.
func TestConsumer_AStuckHandlerHoldsUpNoOtherLane(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 3, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		release := make(chan struct{})
		var stuck atomic.Bool
		journal := &flow{}
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if r.Partition == 2 && stuck.CompareAndSwap(false, true) {
				<-release
			}
			return journal.handle(ctx, r)
		})
		cfg.Order, cfg.Policy.HandlerTimeout, cfg.MaxInFlight = order, time.Second, 100
		c := k.Run(cfg)
		ctx, end := context.WithCancel(context.Background())
		var producing sync.WaitGroup
		cl := client(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
		producing.Go(func() { journal.runs(ctx, cl) })
		time.Sleep(2 * time.Minute)
		if handled, late := journal.take(); handled[0] < 236 || handled[1] < 236 || late[0] > time.Second || late[1] > time.Second {
			t.Errorf("beside a handler that hangs for 2 minutes, %v records were handled, the latest %v late; want 240 of the first two lanes, 1 s late at most", handled, late)
		}
		if l := laneOf(t, c, "orders", 2); l.State != consumer.StateStuck || c.Health().OK {
			t.Errorf("the lane is %s, want stuck, and health not OK", l.State)
		}
		close(release)
		time.Sleep(time.Minute)
		end()
		producing.Wait()
		time.Sleep(10 * time.Second)
		if l := laneOf(t, c, "orders", 2); l.Offsets[0].Pending != 0 {
			t.Errorf("%d records of the lane are unfinished after its handler returned", l.Offsets[0].Pending)
		}
		isOK(t, c)
	})
}

// chaos produces while members come and go, connections die, coordinators (and leaders) move, and
// requests are refused.
func chaos(t *testing.T, k *consumertest.Kafka, seed uint64, opts []kgo.Opt, moves bool) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	k.Patience = 5 * time.Minute
	for i := range 2 {
		port := 30_000 + i
		if moves {
			port = 0 // real ones: any that is free
		}
		if _, _, err := k.Cluster.AddNode(-1, port); err != nil {
			t.Fatal(err)
		}
	}
	k.CreateTopic("orders", 4)
	k.CreateTopic("orders.retry.300ms", 4)
	limit(t, k, "orders.retry.300ms", 10_000)
	watchCommits(t, k)
	cfg := config(handle)
	if !moves { // a strain costs runs, and in real time that is most of the test
		cfg.Policy.Breaker = consumer.Breaker{MaxOutage: 2 * time.Second}
	}
	cfg.Kafka = append(cfg.Kafka, opts...)
	cfg.Order = consumer.Order(rnd.IntN(3))
	cfg.DrainTimeout = 2 * time.Second
	// with too little room, parked records are fetched again
	cfg.MaxParkedBytes = []int64{0, 2_000, 20_000}[rnd.IntN(3)]
	k.Run(cfg)
	var guests []*consumertest.Consumer
	pick := func(errs ...*kerr.Error) *kerr.Error { return errs[rnd.IntN(len(errs))] }
	for range 25 {
		records := many(rnd.IntN(60))
		// The record is too large for the first tier, whatever the faults. So when it runs again
		// after an unclean hand-over, it must end where it ended before.
		if len(records) > 0 && rnd.IntN(4) == 0 {
			records[rnd.IntN(len(records))].Value = noise(20_000)
		}
		k.Produce(records...)
		switch rnd.IntN(9) {
		case 0:
			if len(guests) < 2 {
				guests = append(guests, k.Begin(cfg))
			}
		case 1:
			if n := len(guests); n > 0 {
				if err := guests[n-1].Stop(); err != nil {
					t.Error(err)
				}
				guests = guests[:n-1]
			}
		case 2:
			expel(t, k, 0)
		case 3:
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: 1 + rnd.IntN(3), Err: pick(
				kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.RequestTimedOut)})
		case 4:
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.300ms", Count: 1 + rnd.IntN(4), Err: pick(
				kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.TopicAuthorizationFailed, kerr.RequestTimedOut, kerr.KafkaStorageError)})
		case 5:
			left := 1 + rnd.IntN(3)
			k.Cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
				k.Cluster.KeepControl()
				if left--; left <= 0 {
					k.Cluster.DropControl()
				}
				return nil, errors.New("connection killed"), true
			})
		case 6:
			if moves {
				k.Cluster.ShufflePartitionLeaders()
			}
		case 7:
			k.Cluster.RehashCoordinators()
		case 8:
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Count: 1 + rnd.IntN(3), Err: pick(kerr.NotLeaderForPartition, kerr.UnknownServerError)})
		}
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
	}
	k.Conserved()
}
