package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
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

// holdUp is a hook that holds up a poll once, after kgo counted its records as polled and before it
// returns them.
type holdUp struct {
	armed         atomic.Bool
	took, release chan struct{}
}

func newHoldUp() *holdUp { return &holdUp{took: make(chan struct{}), release: make(chan struct{})} }

func (h *holdUp) OnFetchRecordUnbuffered(r *kgo.Record, polled bool) {
	if polled && r.Topic == "orders" && h.armed.CompareAndSwap(true, false) {
		close(h.took)
		<-h.release
	}
}

// onBoth makes n records for each of the two partitions.
func onBoth(n int) []*kgo.Record {
	return append(onPartition(0, "x", n), onPartition(1, "x", n)...)
}

// blocksAt is a handler that waits at an offset of each partition until the test lets it go on, or
// it is cancelled.
func blocksAt(offset int64, goOn <-chan struct{}) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		time.Sleep(50 * time.Millisecond) // what is finished is registered as time passes
		if r.Offset == offset {
			select {
			case <-goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

// stoodAt waits until all lanes were read to an offset, a record of each is unfinished, and the
// floors below are committed.
func stoodAt(t *testing.T, c *consumertest.Consumer, lanes int, floor, next int64) {
	t.Helper()
	eventually(t, "all is read and the finished committed", func() bool {
		now := c.Health().Lanes
		for _, l := range now {
			if o := l.Offsets[0]; o.Committed != floor || o.Floor != floor || o.Next != next {
				return false
			}
		}
		return len(now) == lanes
	})
}

// The group revokes a partition and gives it to the same member again, before records of a poll are
// dispatched. The new lane begins at the committed offset, below them. It took these records for
// its first, and the ones in between, which came next, for repetitions: it committed past them
// without running them. A rebalance waited for the poll loop, and the poll loop for the drain.
func TestConsumerPoll_RecordsInHandReachNoLaterLane(t *testing.T) {
	each(t, balancers, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		k.Patience = 2 * time.Minute
		hold, goOn := newHoldUp(), make(chan struct{})
		cfg := config(blocksAt(10, goOn))
		cfg.DrainTimeout = time.Second
		cfg.Kafka = append(cfg.Kafka, opts...)
		guests := cfg
		guests.Handler = blocksAt(10, nil)
		// a poll brings of both partitions
		cfg.Kafka = append(cfg.Kafka, kgo.WithHooks(hold), kgo.FetchMinBytes(1<<20))
		stay := k.Run(cfg)
		k.Produce(onBoth(20)...)
		stoodAt(t, stay, 2, 10, 20)
		hold.armed.Store(true)
		k.Produce(onBoth(10)...)
		<-hold.took
		guest := k.Run(guests)
		eventually(t, "the guest has a lane", func() bool { return len(guest.Health().Lanes) == 1 })
		stop(t, guest)
		time.Sleep(10 * time.Second) // the partition is given back
		close(hold.release)
		time.Sleep(10 * time.Second)
		close(goOn)
		k.Conserved()
	})
}

// An expelled member joins again, keeps its partitions, and restarts at the committed offsets.
// Until the coordinator answers with these, polls continue at the old positions. Their records are
// not for the new lanes, and come again.
func TestConsumerPoll_RecordsBeforeExpulsionAreDropped(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		k.Patience = 2 * time.Minute
		hold, more, goOn := newHoldUp(), make(chan struct{}), make(chan struct{})
		first, then := blocksAt(10, more), blocksAt(15, goOn)
		cfg := config(func(ctx context.Context, r *kgo.Record) error { return errors.Join(first(ctx, r), then(ctx, r)) })
		cfg.DrainTimeout = time.Second
		log := logged(&cfg)
		// The heartbeat comes late: the member learns of it by a refused commit.
		cfg.Kafka = []kgo.Opt{kgo.WithHooks(hold), kgo.FetchMinBytes(1 << 20), kgo.HeartbeatInterval(8 * time.Second)}
		stay := k.Run(cfg)
		k.Produce(onBoth(20)...)
		stoodAt(t, stay, 2, 10, 20)
		var silent atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.OffsetFetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			return nil, errors.New("connection killed"), silent.Load()
		})
		silent.Store(true)
		expel(t, k, 0)
		close(more)
		eventually(t, "the member has joined again", func() bool { return log.with("the member was expelled and has joined again") > 0 })
		hold.armed.Store(true)
		k.Produce(onBoth(10)...)
		<-hold.took
		silent.Store(false)
		time.Sleep(30 * time.Second) // the offsets are there
		close(hold.release)
		time.Sleep(10 * time.Second)
		close(goOn)
		k.Conserved()
	})
}

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
