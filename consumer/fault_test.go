package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/retrytopics"
)

// watchCommits fails the test when what is committed goes back.
func watchCommits(t *testing.T, k *consumertest.Kafka) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
	})
	wg.Go(func() {
		last := map[string]kfake.GroupCommit{}
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			info := k.Cluster.GroupInfo("billing")
			if info == nil {
				continue
			}
			for topic, partitions := range info.Commits {
				for p, now := range partitions {
					at := fmt.Sprintf("%s/%d", topic, p)
					if before, ok := last[at]; ok && now.Offset < before.Offset {
						t.Errorf("%s: %d is committed after %d was", at, now.Offset, before.Offset)
					}
					last[at] = now
				}
			}
		}
	})
}

// The broker checks membership, not ownership: an expelled member that has joined again could commit over the progress that
// the others made meanwhile.
func TestAnExpelledMemberDoesNotRewindWhatOthersCommitted(t *testing.T) {
	each(t, map[string]time.Duration{
		"told by a heartbeat": 200 * time.Millisecond, "told by a refused commit": 8 * time.Second,
	}, 4, func(t *testing.T, k *consumertest.Kafka, heartbeat time.Duration) {
		watchCommits(t, k)
		cfg := config(handle)
		cfg.Kafka = []kgo.Opt{kgo.HeartbeatInterval(heartbeat)}
		k.Run(cfg)
		k.Produce(many(300)...)
		k.Run(cfg)
		for range 5 {
			k.Produce(many(100)...)
			expel(t, k, 0)
			time.Sleep(700 * time.Millisecond)
		}
		k.Conserved()
	})
}

func TestNothingIsLostUnderFaults(t *testing.T) {
	t.Parallel()
	seeds, _ := strconv.Atoi(os.Getenv("SIDING_SEEDS")) // more of them for a soak
	for seed := range uint64(max(seeds, 12)) {
		for name, opts := range balancers {
			t.Run(fmt.Sprintf("%s/seed %d", name, seed), func(t *testing.T) {
				t.Parallel()
				consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) { chaos(t, k, seed, opts, false) })
			})
		}
	}
}

// Leaders move in real time only: kgo asks a broker that is not the leader any more again and again until its metadata is fresh,
// and in virtual time none passes meanwhile.
func TestNothingIsLostWhileLeadersMove(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			// The embedded broker forgets who is joining when the group's coordinator moves: what is asked then is answered by a timeout.
			soon := []kgo.Opt{kgo.RebalanceTimeout(6 * time.Second), kgo.RequestTimeoutOverhead(2 * time.Second)}
			chaos(t, consumertest.Start(t), 1000+seed, soon, true)
		})
	}
}

// chaos produces while members come and go, connections die, coordinators (and leaders) move, and requests are refused.
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
	cfg.Kafka = append(cfg.Kafka, opts...)
	cfg.Order = consumer.Order(rnd.IntN(3))
	cfg.DrainTimeout = 2 * time.Second
	cfg.MaxParkedBytes = []int64{0, 2_000, 20_000}[rnd.IntN(3)] // with too little room, what is parked is fetched again
	k.Run(cfg)
	var guests []*consumertest.Consumer
	pick := func(errs ...*kerr.Error) *kerr.Error { return errs[rnd.IntN(len(errs))] }
	for range 25 {
		records := many(rnd.IntN(60))
		// Too large for the first tier, by its own size and not by a fault: after an unclean hand-over a record runs again, and must end
		// where it ended before.
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

// Lanes were opened in one call, which ended at the first trouble: a sibling of one lane that refused kept every other lane of the
// assignment from its first record.
func TestALaneThatCannotStartHoldsUpNoOther(t *testing.T) {
	each(t, map[string]kfake.Fault{
		"its commit is refused":        {Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "bills.retry.300ms", Partitions: []int32{1}},
		"its bounds are not to be had": {Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "bills.retry.300ms"},
	}, 1, func(t *testing.T, k *consumertest.Kafka, refuse kfake.Fault) {
		k.CreateTopic("bills", 2)
		refuse.Count, refuse.Err = -1, kerr.TopicAuthorizationFailed
		refused := k.Cluster.Fault(refuse)
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		c := k.Begin(cfg)
		handledOnce(k, k.Produce(many(10)...))
		bills := k.Produce(&kgo.Record{Topic: "bills", Partition: 1, Value: []byte("x")})
		if refuse.Partitions != nil { // the other lane of the topic runs as well
			eventually(t, "bills/0 runs", func() bool { return c.Health().Lanes[0].State == consumer.StateRunning })
		}
		if l := c.Health().Lanes[1]; l.Topic != "bills" || l.Partition != 1 || l.State != consumer.StateStarting {
			t.Errorf("lane %s/%d is %v, want bills/1 to be starting", l.Topic, l.Partition, l.State)
		}
		refused.Remove()
		k.Handled(bills[0], 1)
		k.Conserved()
	})
}

// Where a partition's log starts and ends is asked for when it is assigned; one that has no leader cannot say.
func TestAPartitionWithoutALeaderKeepsNoOtherFromItsStart(t *testing.T) {
	t.Parallel()
	for name, topic := range sourceAndTier {
		t.Run(name, func(t *testing.T) {
			onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
				before := k.Run(config(handle))
				k.Produce(many(40)...)
				k.Conserved() // every partition has a committed offset
				stop(t, before)
				fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: topic, Partitions: []int32{1}, Count: -1, Err: kerr.LeaderNotAvailable})
				k.Begin(config(func(context.Context, *kgo.Record) error { return nil }))
				for _, r := range k.Produce(many(40)...) {
					if r.Partition == 0 {
						k.Handled(r, 1)
					}
				}
				fault.Remove()
				k.Conserved()
			})
		})
	}
}

// The group has no offset on the partition, and nobody says where its log starts. The member left the group and joined again, over and over:
// no lane of any topic ran.
func TestAPartitionWhoseStartIsNotKnownKeepsNoOtherFromItsStart(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("bills", 1)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "orders", Partitions: []int32{1}, Count: -1, Err: kerr.LeaderNotAvailable})
		cfg := config(fine)
		cfg.Topics = []string{"orders", "bills"}
		k.Begin(cfg)
		b := k.Produce(&kgo.Record{Topic: "bills", Value: []byte("x")})
		k.Handled(b[0], 1)
		for _, r := range k.Produce(many(40)...) {
			if r.Partition == 0 {
				k.Handled(r, 1)
			}
		}
		fault.Remove()
		k.Conserved()
	})
}

// A source grew, its siblings may not, and then all of its partitions are assigned anew.
func TestAPartitionWhoseSiblingsAreMissingKeepsNoOtherFromItsStart(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(fine)
		cfg.Kafka = []kgo.Opt{kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(300 * time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond)}
		first := k.Run(cfg)
		handledOnce(k, k.Produce(many(5)...))
		stop(t, first)
		cfg.Provision.Mode = retrytopics.Off
		c := k.Run(cfg)
		growTopic(t, k, "orders", 2)
		time.Sleep(20 * time.Second)
		handledOnce(k, k.Produce(&kgo.Record{Topic: "orders", Partition: 0, Value: []byte("x")}))
		if l := c.Health().Lanes[1]; l.State != consumer.StateStarting {
			t.Errorf("the lane without siblings is %v, want starting", l.State)
		}
	})
}
