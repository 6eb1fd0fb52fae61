// Package consumertest runs consumers in tests, with the same assertions on three kinds of broker.
// [Virtual] has an embedded broker in virtual time, where hours of delay take milliseconds. [Start]
// has an embedded broker in real time, and [On] uses any broker.
//
//	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
//		k.CreateTopic("orders", 3)
//		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: handle})
//		r := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("busy")})[0]
//		k.Parked(r, 5*time.Second, "payment.busy")
//		k.Handled(r, 1)
//		k.Conserved()
//	})
//
// An assertion waits until it holds, up to Kafka.Patience, and then ends the test. It ends the test
// within seconds when it cannot hold any more: the record was handled, discarded or dead-lettered,
// and no copy of it is in flight. After a redrive it waits for as long as Patience. Its message
// says what the handler returned for the record, and where its last copy is. Call assertions from
// the test's goroutine.
package consumertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/internal/bubble"
	"github.com/sidingkafka/siding/retrytopics"
)

// Kafka is a broker with a test's topics, records and consumers.
type Kafka struct {
	// Cluster is the embedded broker, for faults and inspection; nil with On.
	Cluster *kfake.Cluster

	// Patience bounds the wait of an assertion. Default: the longest RetryTime of the policies of
	// the consumers that were run, a week at most, and 2 h of virtual time with Virtual, 30 s with
	// Start, 1 m with On. A test may set it at any time; consumers that it runs later do not change
	// it then. An assertion fails in any case before go test ends the test for its -timeout.
	Patience time.Duration

	own   time.Duration // the Patience that the kit has set
	extra time.Duration // of it, what is for the policies
	over  time.Time     // when an assertion has to fail at last; zero if there is no such time

	tb      testing.TB
	opts    []kgo.Opt
	client  *kgo.Client
	admin   *kadm.Client
	journal *journal

	mu       sync.Mutex
	produced []*kgo.Record
	siblings map[string]consumed // by source
	groups   map[string][]string // by source: all that consumers were run as
	deleted  map[string]bool
	// recreated has the topics that were deleted once: offsets may be of the deleted one.
	recreated map[string]bool
	paced     sync.Once
}

// consumed describes a source topic that consumers were run on, by all their configurations: an
// earlier one may have moved records elsewhere.
type consumed struct {
	groups []string // the current one first, then former ones
	tiers  []retrytopics.Tier
	dlqs   []string          // the current one first
	ledger map[string]string // by its dead-letter topic
}

// Virtual runs f in a testing/synctest bubble with an embedded broker on a virtual network.
// time.Sleep costs nothing, and an hour of delays costs about 0.1 s (go test
// ./consumer/consumertest -run Cheap -v prints it). The clock starts at midnight UTC 2000-01-01.
// Goroutines of f must end with it.
//
// The time of an idle consumer is spent on its requests, so these are rarer than in production. A
// client asks for metadata once a second at most. A member learns of a rebalance after 20 s. A
// partition that is added or resumed is read after half a second, or after a tenth of the time
// since the last change, and two minutes at most. The broker recodes most batches of zstd.
func Virtual(t *testing.T, f func(*testing.T, *Kafka)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		// The last cleanup. Time stands still afterwards, also for a goroutine of a closed client
		// that sleeps once more: synctest would take that for a deadlock.
		t.Cleanup(func() { time.Sleep(100 * time.Millisecond) })
		var vn kfake.VirtualNetwork
		f(t, start(t, 2*time.Hour, bubble.Opts(&vn), func(opts ...kfake.Opt) (*kfake.Cluster, error) { return bubble.NewCluster(&vn, opts...) }))
	})
}

// Start starts an embedded broker in real time, in memory, on a free port of the loopback
// interface, and stops it at cleanup.
func Start(tb testing.TB) *Kafka {
	tb.Helper()
	return start(tb, 30*time.Second, nil, kfake.NewCluster)
}

func start(tb testing.TB, patience time.Duration, opts []kgo.Opt, brokers func(...kfake.Opt) (*kfake.Cluster, error)) *Kafka {
	tb.Helper()
	c, err := brokers(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"group.consumer.heartbeat.interval.ms": "500"}))
	if err != nil {
		tb.Fatalf("consumertest: start the embedded broker: %v", err)
	}
	tb.Cleanup(c.Close)
	k := on(tb, patience, append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...),
		// The embedded broker answers at once; the metadata delays for real clusters only slow
		// tests.
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		// Clients compress their telemetry for the broker every 30 s. The embedded broker discards
		// it, and in virtual time it was most of an hour's cost.
		kgo.DisableClientMetrics(),
	}, opts...))
	k.Cluster = c
	return k
}

// On makes the same assertions on any broker, which the options connect to.
func On(tb testing.TB, opts ...kgo.Opt) *Kafka {
	tb.Helper()
	return on(tb, time.Minute, opts)
}

func on(tb testing.TB, patience time.Duration, opts []kgo.Opt) *Kafka {
	tb.Helper()
	k := &Kafka{tb: tb, opts: opts, Patience: patience, own: patience, over: over(tb), journal: newJournal(), siblings: map[string]consumed{}, groups: map[string][]string{}, deleted: map[string]bool{}, recreated: map[string]bool{}}
	cl, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.RecordPartitioner(partitioner()))...)
	if err != nil {
		tb.Fatalf("consumertest: client: %v", err)
	}
	tb.Cleanup(cl.Close)
	k.client, k.admin = cl, kadm.NewClient(cl)
	return k
}

// Opts returns the options that connect to the broker, for a consumer.Config or a client of the
// test's own.
func (k *Kafka) Opts() []kgo.Opt { return append([]kgo.Opt(nil), k.opts...) }

// CreateTopic creates a topic. After DeleteTopic it recreates it: records produced to the deleted
// topic do not count any more.
func (k *Kafka) CreateTopic(name string, partitions int32) {
	k.tb.Helper()
	ctx, cancel := k.within()
	defer cancel()
	var made kadm.CreateTopicResponse
	for {
		var err error
		made, err = k.admin.CreateTopic(ctx, partitions, -1, nil, name)
		if err == nil {
			break
		}
		// A broker deletes a topic some time after its answer.
		if deleted := k.forget(name); !deleted || !errors.Is(err, kerr.TopicAlreadyExists) || ctx.Err() != nil {
			k.tb.Fatalf("consumertest: create topic %q: %v", name, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.forget(name)
	k.mu.Lock()
	delete(k.deleted, name)
	k.mu.Unlock()
	// For a moment a broker does not know a new topic, or answers for its predecessor.
	for {
		d, err := k.admin.ListTopics(ctx, name)
		if err == nil && d[name].Err == nil && d[name].ID == made.ID && len(d[name].Partitions) == int(partitions) && allLed(d[name]) {
			return
		}
		select {
		case <-ctx.Done():
			k.tb.Fatalf("consumertest: topic %q has no leader on each partition: %v", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DeleteTopic deletes a topic with all its records.
func (k *Kafka) DeleteTopic(name string) {
	k.tb.Helper()
	ctx, cancel := k.within()
	defer cancel()
	if k.Cluster != nil {
		k.pace()
	}
	if _, err := k.admin.DeleteTopic(ctx, name); err != nil {
		k.tb.Fatalf("consumertest: delete topic %q: %v", name, err)
	}
	k.mu.Lock()
	k.deleted[name], k.recreated[name] = true, true
	k.mu.Unlock()
}

// pace delays fetches once and for all. For a deleted topic the embedded broker answers at once,
// whatever else was requested, and kgo fetches again at once. In virtual time no time would pass.
func (k *Kafka) pace() {
	k.paced.Do(func() {
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			k.Cluster.SleepControl(func() { time.Sleep(50 * time.Millisecond) })
			return nil, nil, false
		})
	})
}

// forget drops the state of a topic that was deleted. It returns false for other topics.
func (k *Kafka) forget(name string) bool {
	k.mu.Lock()
	if !k.deleted[name] {
		k.mu.Unlock()
		return false
	}
	k.produced = slices.DeleteFunc(k.produced, func(r *kgo.Record) bool { return r.Topic == name })
	k.mu.Unlock()
	k.journal.forget(name)
	k.client.PurgeTopicsFromClient(name)
	return true
}

func allLed(t kadm.TopicDetail) bool {
	for _, p := range t.Partitions {
		if p.Err != nil || p.Leader < 0 {
			return false
		}
	}
	return true
}

// Produce writes records, each to its Partition if that is positive and by its key otherwise, and
// returns them with their coordinates. Conserved counts them.
func (k *Kafka) Produce(records ...*kgo.Record) []*kgo.Record {
	k.tb.Helper()
	ctx, cancel := k.within()
	defer cancel()
	for _, result := range k.client.ProduceSync(ctx, records...) {
		switch topic := result.Record.Topic; {
		case errors.Is(result.Err, kerr.UnknownTopicOrPartition):
			k.tb.Fatalf("consumertest: produce to topic %q: it does not exist, or lacks the record's partition; CreateTopic makes it: %v", topic, result.Err)
		case result.Err != nil:
			k.tb.Fatalf("consumertest: produce to topic %q: %v", topic, result.Err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.produced = append(k.produced, records...)
	return records
}

// within returns a context for the wait of an assertion.
func (k *Kafka) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), k.patience())
}

// lastWords is what remains of a test's time for the message of an assertion that fails.
const lastWords = 15 * time.Second

// over returns when to fail, if the test has to end at some time. A binary that its -timeout ends
// says nothing about the record.
func over(tb testing.TB) (at time.Time) {
	defer func() { _ = recover() }() // Deadline panics in virtual time
	if t, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := t.Deadline(); ok {
			at = end.Add(-lastWords)
		}
	}
	return at
}

// patience returns how long an assertion may wait from now on.
func (k *Kafka) patience() time.Duration {
	k.mu.Lock() // Begin may make it longer
	defer k.mu.Unlock()
	if k.over.IsZero() {
		return k.Patience
	}
	return min(k.Patience, max(time.Until(k.over), time.Second))
}
