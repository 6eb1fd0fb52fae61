package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
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
