package consumer_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
)

// Trap 6: compaction leaves gaps of any size, and a tracker that counts offsets waits for what was
// in them.
//
// A real broker compacts in its own time, so this is on the embedded one alone; the suite has the
// gaps of transactions.
func TestConsumerCommit_CompactedOffsetsHoldBackNothing(t *testing.T) {
	t.Parallel()
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				if err := k.Cluster.CreateTopic("orders", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
					t.Fatal(err)
				}
				var records, kept []*kgo.Record
				// more than a chunk of the tracker lies between two remaining records
				for i := range 10_000 {
					r := &kgo.Record{Topic: "orders", Key: []byte("often"), Value: fmt.Append(nil, i)}
					if i == 7 || i == 9000 {
						r.Key = fmt.Append(nil, "once-", i)
						kept = append(kept, r)
					}
					records = append(records, r)
				}
				k.Produce(records...)
				kept = append(kept, k.Produce(&kgo.Record{Topic: "orders", Key: []byte("often"), Value: []byte("last")})...)
				k.Cluster.Compact()
				if size := k.Cluster.PartitionInfo("orders", 0).NumBytes; size > 1000 {
					t.Fatalf("%d bytes are left, want those of three records", size)
				}
				cfg := config(busyOnce)
				cfg.Order = order
				k.Run(cfg)
				handledOnce(k, kept)
				committed(t, k, "orders", 0, int64(len(records)+1))
			})
		})
	}
}

// watchCommits fails the test when a committed offset goes back.
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

// The broker checks membership, not ownership. So an expelled member that joins again could
// overwrite the offsets that other members committed meanwhile.
func TestConsumerCommit_ExpelledMemberRewindsNothing(t *testing.T) {
	each(t, map[string]time.Duration{
		"by a heartbeat": 200 * time.Millisecond, "by a refused commit": 8 * time.Second,
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

// Trap 28: the group's offsets on the retry topics expire, since no member subscribes to them
// (KIP-211). They are committed again each day, those of a tier that is only drained too.
func TestConsumerCommit_IdleTiersOffsetsDoNotExpire(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		expireOffsets(t, k, "1500") // 25 hours
		cfg := config(busyOnce)
		// see quietly
		cfg.Kafka = []kgo.Opt{kgo.FetchMaxWait(time.Hour), kgo.HeartbeatInterval(20 * time.Second)}
		cfg.CommitInterval = time.Minute
		drained := cfg
		drained.Policy.Tiers = []time.Duration{time.Second, 3 * time.Second}
		first := k.Run(drained)
		handledOnce(k, k.Produce(many(20)...))
		stop(t, first)
		c := k.Run(cfg)
		want := map[string]int64{}
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				want[fmt.Sprint(o.Topic, "/", l.Partition)] = o.Next
			}
		}
		if len(want) != 10 {
			t.Fatalf("the lanes have the partitions %v, want those of the source, two tiers and two drained ones", want)
		}
		time.Sleep(26 * time.Hour)
		commits := k.Cluster.GroupInfo("billing").Commits
		for _, l := range c.Health().Lanes {
			for _, o := range l.Offsets {
				at, ok := commits[o.Topic][l.Partition]
				if name := fmt.Sprint(o.Topic, "/", l.Partition); !ok || at.Offset != want[name] {
					t.Errorf("%s: %d is committed (%v) after 26 idle hours, want %d", name, at.Offset, ok, want[name])
				}
			}
		}
	})
}
