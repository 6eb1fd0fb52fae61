package consumer

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// told is a log that a test reads while it is written.
type told struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *told) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *told) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// kgo sends a broker one request after the other. One that waits behind another's dial does not
// look at its own context, so a look took as long as that dial, with the turn of the poll loop: 10
// s with kgo's own dialer, and without a bound with a user's.
func TestConsumerOffsets_BoundsComeInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := idle(t, Config{Logger: slog.New(slog.DiscardHandler)}, func() {})
		silent, err := c.producer.Client()
		if err != nil {
			t.Fatal(err)
		}
		c.admin = kadm.NewClient(silent)
		l := held(c, 0, "m")
		slow, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { _ = silent.Ping(slow) }()
		synctest.Wait()
		began := time.Now()
		c.moveSources([]outOfRange{{at: topicPartition{l.topic, l.partition}}})
		if took := time.Since(began); took != offsetsTimeout+timestampSlack {
			t.Errorf("the look held the poll loop up for %v, want %v", took, offsetsTimeout+timestampSlack)
		}
		silent.Close()
	})
}

// A broker that falls silent leaves the positions on the others in reach.
func TestConsumerOffsets_BoundsBesideASilentBroker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var vn kfake.VirtualNetwork
		cluster, err := kfake.NewCluster(kfake.Ports(9092, 9093), kfake.SeedTopics(2, "orders"), kfake.ListenFn(vn.Listen))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		for p := range int32(2) {
			if err := cluster.MoveTopicPartition("orders", p, p); err != nil {
				t.Fatal(err)
			}
		}
		addrs := cluster.ListenAddrs()
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
		c := &Consumer{admin: kadm.NewClient(cl)}
		ctx, cancel := context.WithTimeout(t.Context(), offsetsTimeout)
		defer cancel()
		began := time.Now()
		b, err := c.bounds(ctx, "orders")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.of("orders", 0); err != nil {
			t.Errorf("of the broker that answers: %v", err)
		}
		if _, _, err := b.of("orders", 1); err == nil {
			t.Error("bounds are known that nobody told")
		}
		if took := time.Since(began); took > offsetsTimeout {
			t.Errorf("the look took %v, want %v at most", took, offsetsTimeout)
		}
	})
}
