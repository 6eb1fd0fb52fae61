package consumer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
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

// Brokers that freeze keep their connections open and answer nothing. kgo awaited them for 10 s a
// request, one request after the other: the last commit, leaving the group, closing four clients.
// Run took 2 to 3 minutes to return.
func TestConsumer_EndsInTimeThoughTheBrokersAreSilent(t *testing.T) {
	type drain struct {
		handler consumer.Handler
		timeout time.Duration
	}
	each(t, cases.Cross(protocols, cases.Cross(map[string]drain{
		"handlers return": {handle, 20 * time.Second},
		"copies wait":     {busyOnce, 3 * time.Second},
		"handlers are cancelled": {func(ctx context.Context, r *kgo.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}, 5 * time.Second},
	}, map[string]func(f *freezer){
		"frozen":                              func(f *freezer) { f.freeze() },
		"frozen, and no new connections come": func(f *freezer) { f.cutOff(); f.freeze() },
	})), 2, func(t *testing.T, k *consumertest.Kafka, tt cases.Pair[[]kgo.Opt, cases.Pair[drain, func(*freezer)]]) {
		for _, wait := range []time.Duration{0, time.Second, 8 * time.Second, 14 * time.Second, 50 * time.Second, 10 * time.Minute} {
			f := newFreezer(t, k)
			cfg := config(tt.B.A.handler)
			cfg.Group = wait.String()
			cfg.DrainTimeout, cfg.Policy.HandlerTimeout = tt.B.A.timeout, -1
			cfg.Kafka = append([]kgo.Opt{f.dialer(), kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second)}, tt.A...)
			log := logged(&cfg)
			c := k.Run(cfg)
			k.Produce(many(200)...)
			time.Sleep(time.Millisecond)
			tt.B.B(f)
			time.Sleep(wait)
			k.Produce(many(200)...)
			began := time.Now()
			if err := c.Stop(); err != nil {
				t.Errorf("silent for %v: Run returned %v", wait, err)
			}
			if took, most := time.Since(began), cfg.DrainTimeout+10*time.Second; took > most {
				t.Errorf("silent for %v: Run took %v to return, want %v at most", wait, took, most)
			}
			log.has(t, 1, "level=WARN", "connections are closed")
			f.thaw()
		}
	})
}

// kgo leaves a group only after a join that is under way, which lasts as long as the slowest
// member's drain. A member that ends meanwhile is out of the group: no partition goes to it.
func TestConsumer_EndsWithinARebalance(t *testing.T) {
	each(t, balancers, 4, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if r.Offset == 0 {
				time.Sleep(20 * time.Second)
			}
			return nil
		})
		cfg.DrainTimeout, cfg.Policy.HandlerTimeout = 30*time.Second, -1
		cfg.Kafka = append([]kgo.Opt{kgo.HeartbeatInterval(3 * time.Second), kgo.SessionTimeout(45 * time.Second)}, opts...)
		log := logged(&cfg)
		stays := k.Run(cfg)
		k.Produce(many(40)...)
		time.Sleep(time.Millisecond)
		for _, wait := range []time.Duration{0, time.Millisecond, time.Second, 4 * time.Second, 3 * time.Second} {
			c := k.Begin(cfg)
			time.Sleep(wait)
			began := time.Now()
			if err := c.Stop(); err != nil {
				t.Errorf("after %v: Run returned %v", wait, err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("after %v: Run took %v to return, want 2 s at most", wait, took)
			}
		}
		time.Sleep(20 * time.Second) // the drain ends, and a heartbeat has the last change
		if lanes := len(stays.Health().Lanes); lanes != 4 {
			t.Errorf("the member that stays has %d lanes, want 4", lanes)
		}
		k.Produce(many(40)...)
		k.Conserved()
		log.has(t, 0, "connections are closed")
	})
}

// A handler that ignores its cancellation, beside silent brokers: Run names it in time.
func TestStuckError_ComesInTimeThoughTheBrokersAreSilent(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		f, release := newFreezer(t, k), make(chan struct{})
		cfg := config(until(release))
		cfg.Kafka = []kgo.Opt{f.dialer()}
		cfg.DrainTimeout, cfg.Policy.HandlerTimeout = 2*time.Second, -1
		c := k.Run(cfg)
		k.Produce(many(1)...)
		time.Sleep(time.Second)
		f.freeze()
		time.Sleep(15 * time.Second)
		began := time.Now()
		err := c.Err()
		if took, most := time.Since(began), cfg.DrainTimeout+10*time.Second; took > most {
			t.Errorf("Run took %v to return, want %v at most", took, most)
		}
		if stuck := new(consumer.StuckError); !errors.As(err, &stuck) || len(stuck.Records) != 1 {
			t.Errorf("Run returned %v, want a StuckError with one record", err)
		}
		close(release)
	})
}

// Nothing is to be handed over before the first join. So Run returns at once, also while it awaits
// an answer: kgo does not give up the beginning of a connection before 10 s are over.
func TestConsumer_EndsAtOnceWhileItAwaitsItsStart(t *testing.T) {
	each(t, map[string]func(*freezer){
		"of frozen brokers":          func(f *freezer) { f.freeze() },
		"of brokers out of reach":    func(f *freezer) { f.cutOff(); f.freeze() },
		"while they create siblings": func(f *freezer) { f.freezeAt(kmsg.CreateTopics) },
		"of the topics":              func(f *freezer) { f.freezeAt(kmsg.Metadata) },
		"of the group's offsets":     func(f *freezer) { f.freezeAt(kmsg.OffsetFetch) },
	}, 2, func(t *testing.T, k *consumertest.Kafka, silence func(*freezer)) {
		for _, wait := range []time.Duration{time.Millisecond, time.Second, 12 * time.Second, 5 * time.Minute} {
			f := newFreezer(t, k)
			silence(f)
			cfg := config(fine)
			cfg.Group = wait.String()
			cfg.Start = consumer.StartLatest()
			cfg.Kafka = []kgo.Opt{f.dialer()}
			c := k.Begin(cfg)
			time.Sleep(wait)
			began := time.Now()
			if err := c.Stop(); err != nil {
				t.Errorf("after %v: Run returned %v", wait, err)
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("after %v: Run took %v to return", wait, took)
			}
		}
	})
}

// To kgo a silent broker is no error before the commit times out. That was not logged at all.
func TestConsumerCommit_LogsACommitWithoutAnswer(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		f := newFreezer(t, k)
		cfg := config(func(context.Context, *kgo.Record) error {
			time.Sleep(time.Second)
			return nil
		})
		cfg.Kafka = []kgo.Opt{f.dialer()}
		log := logged(&cfg)
		k.Run(cfg)
		k.Handled(k.Produce(many(40)...)[0], 1)
		f.freeze()
		time.Sleep(90 * time.Second)
		if log.with("level=WARN", "offsets not committed") == 0 {
			t.Errorf("commits that no broker answers for 90 s are not logged:\n%s", log.buf.String())
		}
	})
}
