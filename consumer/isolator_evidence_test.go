package consumer_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// Records are parked for half a day, so the floor of their retry topic stands still. Processes are
// killed by accident, hours apart, and commit thousands of times in between. Nothing is isolated.
func TestIsolator_AccidentsHoursApartIsolateNoRetries(t *testing.T) {
	cases.Skip(t)
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		m := newMortal(t, k)
		cfg := config(m.handler(func(context.Context, *kgo.Record) bool { return false }, busyOnce))
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{12 * time.Hour}, -1
		quietly(&cfg)
		log := logged(&cfg)
		var all []*kgo.Record
		for range 3 {
			c := k.Run(cfg)
			records := k.Produce(many(20)...)
			for _, r := range records {
				k.Parked(r, 12*time.Hour, "")
			}
			all = append(all, records...)
			time.Sleep(2 * time.Hour)
			t.Log(said(k, "orders.retry.12h", 0))
			m.dead.Store(true)
			stopStuck(t, c)
			time.Sleep(2 * time.Minute)
			m.dead.Store(false)
		}
		k.Run(cfg)
		time.Sleep(time.Minute)
		if n := log.with("processes died while they ran these records"); n > 0 {
			t.Errorf("%d times records were isolated; %s", n, said(k, "orders.retry.12h", 0))
		}
		time.Sleep(13 * time.Hour)
		if n := m.missing(all); n > 0 || m.letters() > 0 {
			t.Errorf("%d are missing, %d letters", n, m.letters())
		}
	})
}

// A process died while a record ran alone, or had condemned it. The log was truncated since, by an
// unclean election: at that offset there is another record now, of a later leader epoch, which no
// process has run. What is finished above a floor is void then; so has to be what is condemned.
func TestIsolator_LaterLeaderVoidsWhatIsCondemned(t *testing.T) {
	each(t, map[string]string{"condemned": "n=2 s=9 c=5", "alone": "n=2 s=9 x=5"}, 1, func(t *testing.T, k *consumertest.Kafka, said string) {
		k.Produce(many(6)...)
		if err := k.Cluster.MoveTopicPartition("orders", 0, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		later := k.Produce(many(6)...)
		leftAt(t, k, "orders", 0, 3, said)
		var epoch atomic.Int32
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			epoch.Store(max(epoch.Load(), r.LeaderEpoch))
			return nil
		}))
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		if epoch.Load() < 1 {
			t.Fatal("the broker has counted no epoch")
		}
		for _, r := range later {
			if done.times(r) != 1 {
				t.Errorf("record %d of epoch %d ran %d times; dead letters: %d", r.Offset, epoch.Load(), done.times(r), len(content(t, k, "orders.dlq")))
			}
		}
	})
}

// While a record that killed processes waits for the DLQ, an operator deletes and recreates a retry
// topic. It must not run.
func TestIsolator_RecreatedTierKeepsWhatIsCondemned(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		guilty := k.Produce(many(10)...)
		left(t, k, "orders", 0, "n=2 s=10 c=3")
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.NotEnoughReplicas})
		var calls ran
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			calls.count(r)
			return nil
		})
		cfg.Order = order
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		before := said(k, "orders", 0)
		k.DeleteTopic("orders.retry.300ms")
		k.CreateTopic("orders.retry.300ms", 1)
		time.Sleep(2 * time.Minute)
		fault.Remove()
		time.Sleep(time.Minute)
		if n := calls.times(guilty[3]); n > 0 {
			t.Errorf("the record that kills ran %d times; the commit said %q before, and says %q now", n, before, said(k, "orders", 0))
		}
		if n := len(content(t, k, "orders.dlq")); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		if n := calls.times(guilty[9]); n != 1 {
			t.Errorf("a record that a commit names as finished ran %d times", n)
		}
	})
}

// The coordinator accepts the commit that names a record alone, after siding has given it up. Then
// the record is not charged with a death: it has not run, and others run.
func TestIsolator_LateAnswerLeavesNoneCharged(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		innocent := k.Produce(onPartition(0, "fine", 3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		var killed atomic.Bool
		began := time.Now()
		k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			for _, of := range req.(*kmsg.OffsetCommitRequest).Topics {
				for _, p := range of.Partitions {
					if p.Metadata != nil && strings.Contains(*p.Metadata, " x=") && time.Since(began) < time.Minute {
						k.Cluster.SleepControl(func() { time.Sleep(40 * time.Second) })
					}
				}
			}
			return nil, nil, false
		})
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			return r.Partition == 1 && strings.Contains(said(k, "orders", 0), " x=") && killed.CompareAndSwap(false, true)
		}, fine))
		cfg.Order, cfg.CommitInterval, cfg.DrainTimeout = order, time.Minute, time.Second
		go func() {
			for range 100 {
				k.Produce(onPartition(1, "others", 1)...)
				time.Sleep(time.Second)
			}
		}()
		m.limited(cfg, 3, func() bool { return m.missing(innocent)+m.letters() <= 3 && m.missing(innocent) == m.letters() })
		time.Sleep(2 * time.Minute)
		t.Logf("killed %v, %d deaths", killed.Load(), m.deaths)
		for _, r := range content(t, k, "orders.dlq") {
			meta, _ := headers.Parse(r.Headers)
			t.Errorf("an innocent is dead-lettered: %v %s", meta.Original, meta.Reason)
		}
	})
}

// The member joins as a record that ran alone ends: no commit can say so. Nothing else runs, and
// kills, until one has.
func TestIsolator_JoinLeavesNoneCharged(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		innocent := k.Produce(onPartition(0, "fine", 3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		var joins, killed atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if !strings.Contains(said(k, "orders", 0), " x=") || !joins.CompareAndSwap(false, true) {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
			resp.ErrorCode = kerr.RebalanceInProgress.Code
			return resp, nil, true
		})
		k.Cluster.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if joins.Load() && !m.dead.Load() {
				k.Cluster.SleepControl(func() { time.Sleep(40 * time.Second) })
			}
			return nil, nil, false
		})
		cfg := config(m.handler(func(_ context.Context, r *kgo.Record) bool {
			return r.Partition == 1 && strings.Contains(said(k, "orders", 0), " x=") && killed.CompareAndSwap(false, true)
		}, func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 {
				time.Sleep(5 * time.Second)
			}
			return nil
		}))
		cfg.Order, cfg.CommitInterval, cfg.DrainTimeout = order, time.Minute, time.Second
		cfg.Policy.HandlerTimeout = 10 * time.Second
		// one comes while a record runs
		cfg.Kafka = append(cfg.Kafka, kgo.HeartbeatInterval(2*time.Second))
		others := k.Produce(onPartition(1, "others", 1)...)
		over := make(chan struct{})
		var producing sync.WaitGroup
		defer producing.Wait()
		defer close(over)
		producing.Go(func() {
			for range 50 {
				k.Produce(onPartition(1, "others", 1)...)
				select {
				case <-over:
					return
				case <-time.After(time.Second):
				}
			}
		})
		m.limited(cfg, 3, func() bool { return m.missing(innocent)+m.missing(others) == m.letters() })
		if !joins.Load() || killed.Load() || m.letters() > 0 {
			t.Errorf("joined %v, killed %v, %d dead letters", joins.Load(), killed.Load(), m.letters())
		}
	})
}

// Retention deletes some records in front while no process runs: what the commit says of the others
// still holds.
func TestIsolator_RetentionKeepsWhatACommitSays(t *testing.T) {
	each(t, map[string]offsets.Metadata{
		"finished":  {Finished: []offsets.Span{{First: 20, Last: 40}}},
		"condemned": {Evidence: offsets.Evidence{Process: 1, Deaths: 2, Suspect: 50, Condemned: []offsets.Alone{{Offset: 30}}}},
	}, 1, func(t *testing.T, k *consumertest.Kafka, said offsets.Metadata) {
		records := k.Produce(many(50)...)
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 5, LeaderEpoch: 0, Metadata: said.Encode(5, 4096)})
			return cl.CommitAllOffsets(ctx, "billing", at)
		})
		deleteRecords(t, k, "orders", 7)
		var calls ran
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			calls.count(r)
			return nil
		})
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		if n := calls.times(records[30]); n > 0 {
			t.Errorf("record 30 ran %d times", n)
		}
		if n := calls.times(records[45]); n != 1 {
			t.Errorf("record 45 ran %d times", n)
		}
	})
}

// An operator moves the group's offset by one with a tool that keeps the metadata (a program on
// kadm: fetch, change At, commit). No record is skipped, and none is dead-lettered in place of
// another.
func TestIsolator_MovedOffsetSkipsNothing(t *testing.T) {
	type move struct {
		by   int64
		said offsets.Metadata
	}
	each(t, map[string]move{
		"forward, finished":  {1, offsets.Metadata{Finished: []offsets.Span{{First: 7, Last: 7}}}},
		"back, finished":     {-3, offsets.Metadata{Finished: []offsets.Span{{First: 12, Last: 12}}}},
		"forward, condemned": {1, offsets.Metadata{Evidence: offsets.Evidence{Process: 1, Deaths: 2, Suspect: 20, Condemned: []offsets.Alone{{Offset: 7}}}}},
		"back, alone":        {-3, offsets.Metadata{Evidence: offsets.Evidence{Process: 1, Deaths: 2, Suspect: 20, Alone: &offsets.Alone{Offset: 10}}}},
	}, 1, func(t *testing.T, k *consumertest.Kafka, c move) {
		records := k.Produce(many(20)...)
		var spared int64
		if len(c.said.Finished) > 0 {
			spared = c.said.Finished[0].First
		} else if len(c.said.Condemned) > 0 {
			spared = c.said.Condemned[0].Offset
		} else {
			spared = c.said.Alone.Offset
		}
		admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
			var at kadm.Offsets
			at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 5, LeaderEpoch: 0, Metadata: c.said.Encode(5, 4096)})
			if err := cl.CommitAllOffsets(ctx, "billing", at); err != nil {
				return err
			}
			now, err := cl.FetchOffsets(ctx, "billing")
			if err != nil {
				return err
			}
			moved := now.Offsets()
			o := moved["orders"][0]
			o.At += c.by
			moved["orders"][0] = o
			return cl.CommitAllOffsets(ctx, "billing", moved)
		})
		var done ran
		cfg := config(done.after(fine))
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		for _, r := range records[5+c.by:] {
			if done.times(r) == 0 && r.Offset != spared {
				t.Errorf("record %d has not run", r.Offset)
			}
		}
	})
}

// Tiny limits, large values: a retry that kills is found all the same.
func TestIsolator_FindsARetryThatKillsWithTinyLimits(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		m := newMortal(t, k)
		var records []*kgo.Record
		for i := range 24 {
			records = append(records, &kgo.Record{Topic: "orders", Key: keyOf(i % 2), Value: noise(900_000)})
		}
		records = k.Produce(records...)
		victim := records[13]
		cfg := config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return r.Partition == victim.Partition && r.Offset == victim.Offset && consumer.DeliveryOf(ctx, r).Attempt == 2
		}, func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 && r.Offset%3 == 0 {
				return classify.Retryable(errBusy)
			}
			if r.Partition == victim.Partition && r.Offset == victim.Offset && consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		cfg.Order, cfg.Concurrency, cfg.MaxInFlight, cfg.MaxParkedBytes = order, 1, 2, 1<<20
		m.until(cfg, func() bool { return m.missing(records) == 1 && m.letters() == 1 })
		if m.deaths > 4 {
			t.Errorf("%d deaths, want 4 at most", m.deaths)
		}
		k.DeadLettered(victim, headers.ReasonCrashLoop)
		k.Conserved()
	})
}

// While a suspect runs alone, a tier that has left the configuration becomes readable: an operator
// has granted the permission. None of its records runs beside the one that is alone.
func TestIsolator_FoundTierRunsNothingBesideOneAlone(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		const tier = "orders.retry.7s"
		cfg := config(busyOnce)
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{7 * time.Second}, -1
		runsUntilParked(t, k, cfg, 7*time.Second, k.Produce(many(1)...)...)
		hidden := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: tier, Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Produce(many(3)...)
		leftAt(t, k, "orders", 0, 1, "n=2 s=2 g=AAE")
		var alone, beside atomic.Bool
		cfg = config(func(_ context.Context, r *kgo.Record) error {
			if r.Topic == "orders" && r.Offset == 1 {
				alone.Store(true)
				time.Sleep(3 * time.Minute)
				alone.Store(false)
			} else if alone.Load() {
				beside.Store(true)
			}
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = order, 10*time.Minute
		k.Run(cfg)
		eventually(t, "it runs alone", alone.Load)
		hidden.Remove()
		time.Sleep(150 * time.Second)
		t.Log(said(k, tier, 0), "/", said(k, "orders", 0))
		if beside.Load() {
			t.Error("a record has run beside the one that runs alone")
		}
		time.Sleep(10 * time.Minute)
	})
}

// The same, and one of its records kills. The one that ran alone has not: it is no dead letter.
func TestIsolator_FoundTierChargesNoneThatIsAlone(t *testing.T) {
	cases.Skip(t)
	each(t, unordered, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		const tier = "orders.retry.7s"
		cfg := config(busyOnce)
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{7 * time.Second}, -1
		runsUntilParked(t, k, cfg, 7*time.Second, k.Produce(&kgo.Record{Topic: "orders", Key: []byte("kills"), Value: []byte("x")})...)
		hidden := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: tier, Count: -1, Err: kerr.TopicAuthorizationFailed})
		k.Produce(many(3)...)
		leftAt(t, k, "orders", 0, 1, "n=2 s=2 g=AAE")
		m := newMortal(t, k)
		var granted atomic.Bool
		cfg = config(m.handler(func(ctx context.Context, r *kgo.Record) bool {
			return consumer.DeliveryOf(ctx, r).Attempt > 1
		}, func(_ context.Context, r *kgo.Record) error {
			if r.Offset == 1 {
				if granted.CompareAndSwap(false, true) {
					hidden.Remove()
				}
				time.Sleep(3 * time.Minute)
			}
			return nil
		}))
		cfg.Order, cfg.Policy.HandlerTimeout = order, 10*time.Minute
		m.limited(cfg, 6, func() bool { return m.letters() > 0 && m.deaths > 0 })
		time.Sleep(20 * time.Minute)
		for _, r := range content(t, k, "orders.dlq") {
			if meta, _ := headers.Parse(r.Headers); string(r.Key) != "kills" {
				t.Errorf("an innocent is dead-lettered after %d deaths: offset %d, %s", m.deaths, meta.Original.Offset, meta.Reason)
			}
		}
	})
}

// A retry may have killed two processes, and waits behind another record of its key as the next
// process starts. It is due: that process may run it, and die.
func TestIsolator_RetryBehindItsKeyIsNoAccident(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const tier = "orders.retry.300ms"
		hot := func() *kgo.Record { return &kgo.Record{Topic: "orders", Key: []byte("hot"), Value: []byte("x")} }
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 && r.Offset == 0 {
				return classify.Retryable(errBusy)
			}
			time.Sleep(20 * time.Second)
			return nil
		})
		cfg.Order, cfg.Policy.HandlerTimeout = consumer.OrderKey, time.Minute
		cfg.Policy.Tiers = []time.Duration{300 * time.Millisecond}
		c := k.Run(cfg)
		k.Parked(k.Produce(hot())[0], 300*time.Millisecond, "")
		stopStuck(t, c)
		leftAt(t, k, tier, 0, 0, "n=1 s=1")
		k.Produce(hot())
		late := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: tier, Count: -1, Err: kerr.KafkaStorageError})
		k.Run(cfg)
		time.Sleep(5 * time.Second)
		late.Remove()
		time.Sleep(10 * time.Second)
		if text := said(k, tier, 0); !strings.Contains(text, " n=1 ") {
			t.Errorf("the process has forgotten the deaths: %q", text)
		}
	})
}
