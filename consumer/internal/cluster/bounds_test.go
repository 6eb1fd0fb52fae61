package cluster

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/bubble"
)

// A broker that falls silent leaves the positions on the others in reach.
func TestBounds_BesideASilentBroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		brokers, err := bubble.NewCluster(&vn, kfake.Ports(9092, 9093), kfake.SeedTopics(2, "orders"))
		if err != nil {
			t.Fatal(err)
		}
		defer brokers.Close()
		for p := range int32(2) {
			if err := brokers.MoveTopicPartition("orders", p, p); err != nil {
				t.Fatal(err)
			}
		}
		addrs := brokers.ListenAddrs()
		cl, err := kgo.NewClient(kgo.SeedBrokers(addrs[0]), kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == addrs[1] {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return vn.DialContext(ctx, network, address)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		const most = 5 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		began := time.Now()
		b, err := New(cl).Bounds(ctx, map[string][]int32{"orders": {0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Of("orders", 0); err != nil {
			t.Errorf("of the broker that answers: %v", err)
		}
		if _, _, err := b.Of("orders", 1); err == nil {
			t.Error("bounds are known that no broker said")
		}
		if took := time.Since(began); took > most {
			t.Errorf("the look took %v, want %v at most", took, most)
		}
	})
}
