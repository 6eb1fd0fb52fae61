// Package consumertest runs consumers in tests: on an embedded broker in virtual time, where hours of delay take
// milliseconds, on an embedded broker in real time, or on any broker, with the same assertions on each.
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
// Assertions wait until they hold, for as long as the kind of broker gives them, and end the test where they do not. They are
// to be called from the test's goroutine.
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

	"github.com/sidingkafka/siding/retrytopics"
)

// Kafka is a broker as a test sees it: topics, records, consumers, and where the records are.
type Kafka struct {
	// Cluster is the embedded broker, for faults and inspection; nil with On.
	Cluster *kfake.Cluster

	// Patience is how long an assertion waits: 2 h of virtual time, 30 s on an embedded broker in real time, 1 m on any
	// other.
	Patience time.Duration

	tb      testing.TB
	opts    []kgo.Opt
	client  *kgo.Client
	admin   *kadm.Client
	journal *journal

	mu       sync.Mutex
	produced []*kgo.Record
	siblings map[string]consumed // by source
	deleted  map[string]bool
	paced    sync.Once
}

// consumed is a source topic that consumers were run on, by all their configurations: where records may be that an earlier one
// moved aside.
type consumed struct {
	groups []string // the current one first, then former ones
	tiers  []retrytopics.Tier
	dlqs   []string          // the current one first
	ledger map[string]string // by its dead-letter topic
}

// Virtual runs f in a testing/synctest bubble with an embedded broker on a virtual network: time.Sleep is free, and a record
// that waits five minutes waits no time at all. The clock starts at midnight UTC 2000-01-01. Goroutines of f must end with it.
func Virtual(t *testing.T, f func(*testing.T, *Kafka)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		var vn kfake.VirtualNetwork
		f(t, start(t, 2*time.Hour, []kgo.Opt{
			kgo.Dialer(vn.DialContext),
			// What a client asks while nothing happens is most of what an hour costs: kgo's own defaults, and not those that shorten
			// waits in real time.
			kgo.FetchMaxWait(5 * time.Second),
			kgo.HeartbeatInterval(3 * time.Second),
		}, kfake.ListenFn(vn.Listen)))
	})
}

// Start starts an embedded broker in real time, in memory, on a free port of the loopback interface, and stops it at cleanup.
func Start(tb testing.TB) *Kafka {
	tb.Helper()
	return start(tb, 30*time.Second, nil)
}

func start(tb testing.TB, patience time.Duration, opts []kgo.Opt, cluster ...kfake.Opt) *Kafka {
	tb.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1),
		kfake.BrokerConfigs(map[string]string{"group.consumer.heartbeat.interval.ms": "500"}),
	}, cluster...)...)
	if err != nil {
		tb.Fatalf("consumertest: start of the embedded broker: %v", err)
	}
	tb.Cleanup(c.Close)
	k := on(tb, patience, append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...),
		// The embedded broker answers at once; waiting for its metadata as for a real cluster's only slows tests.
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		// Nobody reads what clients tell the embedded broker of themselves, and they compress it anew every 30 s: in virtual time that was
		// most of what an hour costs.
		kgo.DisableClientMetrics(),
	}, opts...))
	k.Cluster = c
	return k
}

// On makes the same assertions on any broker, which the options reach.
func On(tb testing.TB, opts ...kgo.Opt) *Kafka {
	tb.Helper()
	return on(tb, time.Minute, opts)
}

func on(tb testing.TB, patience time.Duration, opts []kgo.Opt) *Kafka {
	tb.Helper()
	k := &Kafka{tb: tb, opts: opts, Patience: patience, journal: newJournal(), siblings: map[string]consumed{}, deleted: map[string]bool{}}
	cl, err := kgo.NewClient(append(opts[:len(opts):len(opts)], kgo.RecordPartitioner(partitioner()))...)
	if err != nil {
		tb.Fatalf("consumertest: client: %v", err)
	}
	tb.Cleanup(cl.Close)
	k.client, k.admin = cl, kadm.NewClient(cl)
	return k
}

// Opts are the options that reach the broker, for a consumer.Config or a client of the test's own.
func (k *Kafka) Opts() []kgo.Opt { return append([]kgo.Opt(nil), k.opts...) }

// CreateTopic makes a topic. One that was deleted before is made anew: what was produced to it and handled of it counts no more.
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
		// A broker deletes a topic some time after it said that it did.
		if deleted := k.forget(name); !deleted || !errors.Is(err, kerr.TopicAlreadyExists) || ctx.Err() != nil {
			k.tb.Fatalf("consumertest: create topic %q: %v", name, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	k.forget(name)
	k.mu.Lock()
	delete(k.deleted, name)
	k.mu.Unlock()
	// A broker answers for a new topic a moment later than the controller made it, and until then for the one that it replaces.
	for {
		d, err := k.admin.ListTopics(ctx, name)
		if err == nil && d[name].Err == nil && d[name].ID == made.ID && len(d[name].Partitions) == int(partitions) && allLed(d[name]) {
			return
		}
		select {
		case <-ctx.Done():
			k.tb.Fatalf("consumertest: topic %q does not come up: %v", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// DeleteTopic deletes a topic, with all that it holds.
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
	k.deleted[name] = true
	k.mu.Unlock()
}

// pace has fetches take a moment, once and for all: for a topic that is gone the embedded broker answers at once, whatever else was
// asked for, kgo asks again at once, and in virtual time none passes meanwhile.
func (k *Kafka) pace() {
	k.paced.Do(func() {
		k.Cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			time.Sleep(5 * time.Millisecond)
			return nil, nil, false
		})
	})
}

// forget forgets what is known of a topic that was deleted. It reports false for one that was not.
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

// Produce writes records, each to its Partition where that is positive and by its key otherwise, and returns them with
// their coordinates. They count for Conserved.
func (k *Kafka) Produce(records ...*kgo.Record) []*kgo.Record {
	k.tb.Helper()
	ctx, cancel := k.within()
	defer cancel()
	if err := k.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		k.tb.Fatalf("consumertest: produce: %v", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.produced = append(k.produced, records...)
	return records
}

// within is how long an assertion waits.
func (k *Kafka) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), k.Patience)
}

// partitioner takes a record's partition where it is positive, and its key otherwise.
func partitioner() kgo.Partitioner {
	byKey := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		keyed := byKey.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition > 0 {
				return int(r.Partition)
			}
			return keyed.Partition(r, n)
		}
	})
}
