package consumer

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
)

// The copies of a lane were within its share of MaxInFlightBytes when they were sent, and over it
// when a second lane was assigned. The lane was then skipped without being marked as full, so that
// the acknowledgement that made room woke no worker.
func TestLane_WakesWhenItsCopiesHaveRoomAgain(t *testing.T) {
	virtual(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "orders.dlq"), kfake.ListenFn(vn.Listen))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cluster.Close)
		reachable := make(chan struct{})
		var ran atomic.Int64
		c := idle(t, Config{MaxInFlightBytes: 1 << 20}, func() { ran.Add(1) })
		writeWith(c, func() (*kgo.Client, error) {
			return kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
				kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
					<-reachable
					return vn.DialContext(ctx, network, address)
				}))
		})
		l := held(c, 0, "m")
		l.copies.Send(forward.NewCopy(&l.source.feed, 0, kgo.Record{Topic: "orders.dlq", Value: make([]byte, 700<<10)}))
		held(c, 1, "m") // halves the share
		l.source.offer([]*kgo.Record{{Topic: "orders"}})
		synctest.Wait()
		if n := ran.Load(); n != 0 {
			t.Fatalf("%d records ran over the lane's share", n)
		}
		close(reachable)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := ran.Load(); n != 1 {
			t.Errorf("%d records ran, want 1: there is room again", n)
		}
	})
}
