package consumer

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

// each runs a test in parallel with others, once for each of the named cases.
func each[C any](t *testing.T, cases map[string]C, f func(*testing.T, C)) {
	t.Helper()
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// virtual runs a test in parallel with others, in virtual time.
func virtual(t *testing.T, f func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// unstarted is a consumer of a broker that does not exist.
func unstarted(t testing.TB, cfg Config, ran func()) *Consumer {
	t.Helper()
	cfg.Group, cfg.Topics, cfg.Kafka = "billing", []string{"orders"}, []kgo.Opt{kgo.SeedBrokers("localhost:1")}
	cfg.Handler = func(context.Context, *kgo.Record) error {
		ran()
		return nil
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// idle is a consumer with all parts of a running one, and a broker that never answers.
func idle(t testing.TB, cfg Config, ran func()) *Consumer {
	t.Helper()
	c := unstarted(t, cfg, ran)
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		c.workers.Wait()
		c.wg.Wait()
		c.copyClients.Close()
	})
	c.ctx, c.stop, c.values = life, life, life
	c.clock = clock.New(&c.wg, life.Done(), func() {})
	silence := kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	writeWith(c, func() (*kgo.Client, error) {
		return kgo.NewClient(silence, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	})
	c.workerPool = &workerPool{limit: c.cfg.Concurrency, wg: &c.workers, run: runUnit, clock: c.clock}
	return c
}

// writeWith makes the consumer write copies with clients from open.
func writeWith(c *Consumer, open func() (*kgo.Client, error)) {
	c.copyClients = forward.NewClients(c.ctx, c.clock, open, open, open)
}

// held gives the consumer a running lane under a membership.
func held(c *Consumer, partition int32, member string) *lane {
	l := c.newLane("orders", partition, member)
	l.source.tracker = offsets.New(0, 0)
	l.intake = intakeOpen
	c.mu.Lock()
	c.lanes[topicPartition{"orders", partition}] = l
	c.countLanes()
	c.mu.Unlock()
	l.run()
	return l
}

// withFeeds gives a lane that a test made its feeds: the source's, and that of a tier of 5 s.
func withFeeds(l *lane) *lane {
	if l.c.tierEnv == nil {
		l.c.cfg.MaxParkedBytes, l.c.cfg.MaxInFlight = 1<<20, 1000
		l.c.provisioner = &provisioner{}
		l.c.tierEnv = l.c.newTierEnv()
	}
	if l.c.groups == nil {
		l.c.groups = []string{"billing"}
	}
	if l.policy == nil {
		l.policy = &Policy{}
	}
	l.source = newSourceFeed(l)
	l.setTiers([]*tierFeed{newTierFeed(l, retrytopics.Tier{Topic: "orders.retry.5s", Delay: 5 * time.Second}, false)})
	return l
}

// feedAt is a feed of a lane: the source's is the first.
func feedAt(l *lane, i int) *feed {
	if i == 0 {
		return &l.source.feed
	}
	return &l.tiers()[i-1].feed
}

// parkDue parks due records in a lane's first tier, and makes them ready. The caller holds the
// lane's lock if other goroutines use the lane.
func parkDue(l *lane, records ...*kgo.Record) {
	f := l.tiers()[0]
	for _, r := range records {
		f.parked.Admit(r, time.Now())
	}
	f.parked.Promote()
}

// waitingFor returns a record of the tier of 5 s that is due at the given time.
func waitingFor(offset int64, written, due time.Time) *kgo.Record {
	m := headers.Meta{
		Original: headers.Position{Topic: "orders", Partition: 3}, Group: "billing", Attempts: 1, Class: "busy", Message: "busy",
		FirstFailedAt: written, FailedAt: written, NotBefore: due, Hops: 1,
	}
	return &kgo.Record{Topic: "orders.retry.5s", Partition: 3, Offset: offset, Timestamp: written, Headers: m.Append(nil)}
}

// bench is a lane with a clock and without Kafka: enough for an attempt.
func bench(t *testing.T, timeout time.Duration) *lane {
	t.Helper()
	c := &Consumer{values: context.WithValue(context.Background(), ctxKey("run"), "run's"), clock: &clock.Clock{Base: time.Now()}}
	return withFeeds(&lane{c: c, topic: "orders", partition: 3, policy: &Policy{HandlerTimeout: timeout}})
}

// pooled makes a pool of workers over running lanes, without Kafka. Without run it has no worker.
func pooled(t *testing.T, order Order, limit, lanes int, run func(*unit)) (*workerPool, []*lane) {
	t.Helper()
	c := &Consumer{laneTable: laneTable{lanes: map[topicPartition]*lane{}}}
	c.cfg.Order, c.cfg.MaxInFlight, c.cfg.MaxInFlightBytes = order, 1000, 1<<20
	c.paused.Store(&map[string]bool{})
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	c.clock = clock.New(&c.wg, done, func() {})
	c.workerPool = &workerPool{limit: limit, wg: &c.workers, run: run, clock: c.clock}
	if run == nil {
		c.workerPool.running = limit // it starts none: the test does a worker's work
	}
	var all []*lane
	for p := range lanes {
		all = append(all, withFeeds(&lane{
			c: c, topic: "orders", partition: int32(p), state: laneRunning, units: map[*unit]struct{}{}, changed: make(chan struct{}, 1),
		}))
	}
	return c.workerPool, all
}

func (l *lane) attemptNow() *attempt {
	l.c.clock.Reading.Store(int64(time.Since(l.c.clock.Base)))
	a := attemptOn(l.source.origin, &kgo.Record{Topic: l.topic})
	a.off = 7
	a.in.last.Store(l.c.clock.Reading.Load())
	return a
}

// attemptOn returns a running attempt.
func attemptOn(from *origin, rec *kgo.Record) *attempt {
	s := new(attempts)
	s.ofOne(from, rec, nil)
	return s.begin(0, 0)
}
