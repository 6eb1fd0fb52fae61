package consumer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/cluster"
)

// The start of a lane may be requested twice before kgo has it: for an expelled member, and again
// when kgo fetches the offsets that the session before did not reach. The first time it is not
// known, and the fetch pauses. The second time it is known, but nothing resumed the fetch.
func TestConsumerStartOffset_KnownStartEndsThePause(t *testing.T) {
	virtual(t, func(t *testing.T) {
		c := idle(t, Config{}, func() {})
		silent, err := c.copyClients.Client()
		if err != nil {
			t.Fatal(err)
		}
		c.group, c.cluster, c.admin = silent, cluster.New(silent), kadm.NewClient(silent)
		c.sourcePauser.client, c.retryPauser.client, c.retryPoll = c.group, c.retryCl, newRetryPoll(c, c.retryCl)
		l := c.newLane("orders", 0, "m")
		c.lanes[topicPartition{"orders", 0}] = l
		check := func(when string, paused bool) {
			t.Helper()
			if got := len(c.group.PauseFetchPartitions(nil)) > 0; got != paused || l.awaitsStart() != paused {
				t.Errorf("%s: its fetch is paused: %v, its start is looked for: %v; want %v", when, got, l.awaitsStart(), paused)
			}
		}
		place := func(committed func(*lane) (cluster.Offset, error)) {
			t.Helper()
			if _, err := c.positions(t.Context(), []*lane{l}, committed); err != nil {
				t.Fatal(err)
			}
		}
		place(func(*lane) (cluster.Offset, error) { return cluster.Offset{}, errors.New("no right to see it") })
		check("unknown", true)
		place(func(*lane) (cluster.Offset, error) {
			return cluster.Offset{EpochOffset: kgo.EpochOffset{Epoch: -1, Offset: 7}}, nil
		})
		check("known", false)
		time.Sleep(time.Minute) // what looked for its start is over
		check("a minute later", false)
		if next := l.source.tracker.Next; next != 7 {
			t.Errorf("it starts at %d, want 7", next)
		}
		// What a commit names as finished counts, unless the commit was made in a deleted topic.
		for _, recreated := range []bool{false, true} {
			if recreated {
				c.committedBefore[topicPartition{"orders", 0}] = 7
			}
			place(func(*lane) (cluster.Offset, error) {
				return cluster.Offset{EpochOffset: kgo.EpochOffset{Epoch: 0, Offset: 7}, Metadata: "siding 1 b=Ag"}, nil
			})
			if counts := l.source.tracker.Restored(); counts == recreated {
				t.Errorf("recreated: %v, and records count as finished: %v", recreated, counts)
			}
		}
		l.close()
		silent.Close() // what still asks ends
	})
}

// A start may be found while kgo still fetches the group's offsets. kgo takes it then, but asks for
// no lane that is open by then, and never reads the partition. So the lane waits until kgo asked.
func TestConsumerStartOffset_WaitsUntilItIsAskedFor(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(vn.Listen), kfake.SeedTopics(1, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		assigned := make(chan struct{})
		group, err := kgo.NewClient(kgo.SeedBrokers(brokers.ListenAddrs()...), kgo.Dialer(vn.DialContext), kgo.DisableAutoCommit(),
			kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"),
			kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(assigned) }))
		if err != nil {
			t.Fatal(err)
		}
		<-assigned
		c := idle(t, Config{}, func() {})
		c.group, c.sourcePauser.client = group, group
		l := c.newLane("orders", 0, "m")
		l.startUnknown = true
		for _, asked := range []bool{false, true} {
			if asked {
				l.startedAt()
			}
			begun := laneStarter{c}.startDeferred(map[*lane]startPosition{l: beginAt(7)})
			if len(begun) > 0 != asked || l.awaitsStart() == asked || l.isRead() != asked {
				t.Errorf("kgo has asked: %v, lanes begin: %d, its start is looked for: %v, it is read: %v", asked, len(begun), l.awaitsStart(), l.isRead())
			}
		}
		l.close()
		group.Close()
		brokers.Close()
		time.Sleep(time.Second) // the last connections end
	})
}
