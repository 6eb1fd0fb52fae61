package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
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

// threeLeaders makes three brokers, each of which leads one partition of orders and of its
// siblings. It returns a group that the third one does not coordinate.
func threeLeaders(t *testing.T, k *consumertest.Kafka) (group string) {
	t.Helper()
	for i := range 2 {
		if _, _, err := k.Cluster.AddNode(-1, 30_000+i); err != nil {
			t.Fatal(err)
		}
	}
	siblings := []string{"orders.retry.300ms", "orders.retry.900ms", "orders.dlq", "orders.dlq.ledger"}
	for _, topic := range siblings {
		k.CreateTopic(topic, 3)
	}
	for _, topic := range append(siblings, "orders") {
		for p := range int32(3) {
			if err := k.Cluster.MoveTopicPartition(topic, p, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := 0; group == "" || k.Cluster.CoordinatorFor(group) == 2; i++ {
		group = fmt.Sprint("billing-", i)
	}
	return group
}

// flow is a steady flow of records on three partitions, every third of which is tried twice. It
// notes how late they are handled.
type flow struct {
	mu      sync.Mutex
	handled [3]int
	late    [3]time.Duration
}

func (f *flow) handle(ctx context.Context, r *kgo.Record) error {
	if bytes.Equal(r.Value, []byte("busy")) && consumer.DeliveryOf(ctx, r).Attempt == 1 {
		return classify.Retryable(errBusy)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled[r.Partition]++
	f.late[r.Partition] = max(f.late[r.Partition], time.Since(r.Timestamp))
	return nil
}

// take returns what came since it was called last.
func (f *flow) take() (handled [3]int, late [3]time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	handled, late = f.handled, f.late
	f.handled, f.late = [3]int{}, [3]time.Duration{}
	return handled, late
}

// runs produces a record to each partition every 500 ms, until ctx ends.
func (f *flow) runs(ctx context.Context, cl *kgo.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		value := "fine"
		if i%3 == 0 {
			value = "busy"
		}
		for p := range int32(3) {
			cl.Produce(context.Background(), &kgo.Record{Topic: "orders", Partition: p, Value: []byte(value), Timestamp: time.Now()}, nil)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// The leader of one partition and its retry partitions freezes for two minutes. The two other lanes
// go on, and catch up whatever happens to their own positions meanwhile. A position outside of its
// log held up all polls, for 5 s of every 6: the poll loop awaited the bounds of logs, those of all
// partitions of the topic, and so the frozen leader's. Once that awaited a connection, no answer
// came at all.
func TestConsumerPoll_ASilentLeaderHoldsUpNoOtherLane(t *testing.T) {
	cases.Skip(t)
	refused := func(topic string, partition int32, why *kerr.Error) func(*consumertest.Kafka) {
		return func(k *consumertest.Kafka) {
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Partitions: []int32{partition}, Err: why})
			time.Sleep(12 * time.Second)
		}
	}
	nothing := func(*consumertest.Kafka) {}
	type fault struct {
		before, meanwhile func(*consumertest.Kafka)
		// how late the records of the healthy lane that the fault is about may come
		late time.Duration
	}
	const inTime = time.Second
	// kgo learns the leaders anew when a retry partition is added at another position, and may ask
	// the silent broker first.
	const afterMetadata = 45 * time.Second
	each(t, cases.Cross(protocols, map[string]fault{
		"alone":                              {nothing, nothing, inTime},
		"its source's position out of range": {refused("orders", 2, kerr.OffsetOutOfRange), nothing, inTime},
		"its tier's position out of range":   {refused("orders.retry.300ms", 2, kerr.OffsetOutOfRange), nothing, inTime},
		"another source's position":          {nothing, refused("orders", 0, kerr.OffsetOutOfRange), 5 * time.Second},
		"another source's position, later too": {nothing, func(k *consumertest.Kafka) {
			for range 4 {
				refused("orders", 0, kerr.OffsetOutOfRange)(k)
			}
		}, 5 * time.Second},
		"another tier's position": {nothing, refused("orders.retry.300ms", 0, kerr.OffsetOutOfRange), afterMetadata},
	}), 3, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[[]kgo.Opt, fault]) {
		k.Patience = time.Hour
		frost, journal := newFreezer(t, k), &flow{}
		cfg := config(journal.handle)
		cfg.Group = threeLeaders(t, k)
		cfg.Kafka = append([]kgo.Opt{
			frost.dialer(), kgo.FetchMaxWait(500 * time.Millisecond), kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second),
		}, tt.A...)
		c := k.Run(cfg)
		ctx, end := context.WithCancel(context.Background())
		var producing sync.WaitGroup
		cl := client(t, k, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
		producing.Go(func() { journal.runs(ctx, cl) })
		time.Sleep(20 * time.Second)
		tt.B.before(k)
		journal.take()
		frost.freeze(k.Cluster.ListenAddrs()[2])
		began := time.Now()
		tt.B.meanwhile(k)
		time.Sleep(2*time.Minute - time.Since(began))
		handled, late := journal.take()
		if handled[0] < 236 || handled[1] < 236 || late[0] > tt.B.late || late[1] > inTime {
			t.Errorf("beside a leader that was silent for 2 minutes, %v records of the lanes were handled, the latest %v late; want 240 of the first two, %v and %v late at most", handled, late, tt.B.late, inTime)
		}
		if handled[2] > 5 {
			t.Errorf("%d records came from the silent leader", handled[2])
		}
		frost.thaw()
		time.Sleep(time.Minute)
		if handled, _ := journal.take(); handled[2] < 356 {
			t.Errorf("%d records of its lane were handled in the minute after the leader thawed, want 360", handled[2])
		}
		end()
		producing.Wait()
		isOK(t, c)
		stop(t, c)
	})
}
