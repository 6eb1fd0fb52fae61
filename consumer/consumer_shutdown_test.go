package consumer_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
)

// copyStopped ends the consumer, which must take no longer than most. If it does, relief lets it
// end.
func copyStopped(t *testing.T, c *consumertest.Consumer, most time.Duration, relief func()) error {
	t.Helper()
	returned := make(chan error, 1)
	go func() { returned <- c.Err() }()
	select {
	case err := <-returned:
		return err
	case <-time.After(most):
		t.Errorf("Run did not return within %v", most)
		relief()
		return <-returned
	}
}

// Run looked for stuck handlers on the lanes that it had at the end, but waited for all workers. So
// a handler that ignored its cancellation held up Run for ever, if its lane had gone to another
// member or was lost before.
func TestStuckError_NamesHandlersOfEarlierLanes(t *testing.T) {
	t.Parallel()
	for how, goes := range map[string]func(t *testing.T, k *consumertest.Kafka, c *consumertest.Consumer, cfg consumer.Config){
		"lost": func(t *testing.T, k *consumertest.Kafka, _ *consumertest.Consumer, _ consumer.Config) {
			expel(t, k, 0)
		},
		"revoked": func(t *testing.T, k *consumertest.Kafka, c *consumertest.Consumer, cfg consumer.Config) {
			k.Run(cfg)
			eventually(t, "a lane goes to the other member", func() bool { return len(c.Health().Lanes) == 1 })
		},
	} {
		t.Run(how, func(t *testing.T) {
			onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
				release := make(chan struct{})
				var mu sync.Mutex
				seen := map[int32]int{}
				cfg := config(func(_ context.Context, r *kgo.Record) error {
					mu.Lock()
					seen[r.Partition]++
					first := seen[r.Partition] == 1
					mu.Unlock()
					if first {
						<-release
					}
					return nil
				})
				cfg.DrainTimeout = 100 * time.Millisecond
				c := k.Run(cfg)
				k.Produce(many(20)...)
				ran := func(n int) func() bool {
					return func() bool {
						mu.Lock()
						defer mu.Unlock()
						return seen[0] >= n && seen[1] >= n
					}
				}
				eventually(t, "the first record of each lane runs", ran(1))
				goes(t, k, c, cfg)
				if how == "lost" {
					eventually(t, "both run again, in new lanes", ran(2))
				}
				err := copyStopped(t, c, time.Minute, func() { close(release) })
				var stuck *consumer.StuckError
				if !errors.As(err, &stuck) {
					t.Fatalf("Run returned %v, want a StuckError", err)
				}
				var at []string
				for _, p := range stuck.Records {
					at = append(at, p.String())
				}
				if slices.Sort(at); !slices.Equal(at, []string{"orders/0/0", "orders/1/0"}) {
					t.Errorf("stuck are %v, want the first record of each lane", at)
				}
				close(release)
			})
		})
	}
}

// An expelled member restarts its lanes within kgo's callback, and asks for their offsets until it
// has them. kgo ends the callback's context only after the callback returned. So Run, cancelled
// meanwhile, did not end while the coordinator refused.
func TestConsumer_EndsWhileItsOffsetsAreRefused(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(handle)
		// the member learns of it by a refused commit first
		cfg.Kafka = []kgo.Opt{kgo.HeartbeatInterval(8 * time.Second)}
		c := k.Run(cfg)
		k.Produce(many(20)...)
		time.Sleep(time.Second)
		refused := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Count: -1, Err: kerr.GroupAuthorizationFailed})
		expel(t, k, 0)
		k.Produce(many(20)...)
		hits(t, refused, 2)
		if err := copyStopped(t, c, 3*time.Minute, refused.Remove); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// Run returns in time if no broker is up.
func TestConsumer_EndsWithoutABroker(t *testing.T) {
	each(t, protocols, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(busyOnce)
		cfg.Kafka = opts
		c := k.Run(cfg)
		k.Produce(many(20)...)
		k.Cluster.Close()
		time.Sleep(5 * time.Second)
		if err := copyStopped(t, c, 3*time.Minute, func() {}); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// The broker accepts requests and answers none: only the client's timeouts, one after another, end
// the waits for it.
func TestConsumer_EndsThoughTheBrokerIsSilent(t *testing.T) {
	each(t, protocols, 2, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		var silent atomic.Bool
		cfg := config(handle)
		cfg.Kafka = append([]kgo.Opt{overSilence(t, k, &silent)}, opts...)
		c := k.Run(cfg)
		k.Produce(many(200)...)
		silent.Store(true)
		time.Sleep(5 * time.Second)
		if err := copyStopped(t, c, 5*time.Minute, func() {}); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// overSilence is a client's dialer whose connections, once silent, discard all bytes that are
// written.
func overSilence(t *testing.T, k *consumertest.Kafka, silent *atomic.Bool) kgo.Opt {
	t.Helper()
	dial := client(t, k).OptValue(kgo.Dialer).(func(context.Context, string, string) (net.Conn, error))
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return swallowing{conn, silent}, err
	})
}

type swallowing struct {
	net.Conn
	silent *atomic.Bool
}

func (c swallowing) Write(b []byte) (int, error) {
	if c.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// To kgo a silent broker is no error before the commit times out. That was not logged at all.
func TestConsumerCommit_LogsACommitWithoutAnswer(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		var silent atomic.Bool
		cfg := config(func(context.Context, *kgo.Record) error {
			time.Sleep(time.Second)
			return nil
		})
		cfg.Kafka = []kgo.Opt{overSilence(t, k, &silent)}
		log := logged(&cfg)
		k.Run(cfg)
		k.Handled(k.Produce(many(40)...)[0], 1)
		silent.Store(true)
		time.Sleep(90 * time.Second)
		if log.with("level=WARN", "offsets not committed") == 0 {
			t.Errorf("commits that no broker answers for 90 s are not logged:\n%s", log.buf.String())
		}
	})
}
