package consumer_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Nothing is lost while brokers refuse, hang up and restart.
func TestConsumer_LosesNothingUnderFaults(t *testing.T) {
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

// Leaders move in real time only. kgo asks a former leader again and again until its metadata is
// fresh, and virtual time does not pass meanwhile.
func TestConsumer_LosesNothingWhileLeadersMove(t *testing.T) {
	if testing.Short() && os.Getenv("CI") == "" {
		t.Skip("takes twenty seconds of real time; make test and CI run it")
	}
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
