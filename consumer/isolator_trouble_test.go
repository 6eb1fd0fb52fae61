package consumer_test

import (
	"context"
	"errors"
	"slices"
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

const stuckTimeout = 10 * time.Second

// left commits what a process that died has left on a partition of which nothing is finished.
func left(t *testing.T, k *consumertest.Kafka, topic string, partition int32, evidence string) {
	t.Helper()
	leftAt(t, k, topic, partition, 0, evidence)
}

// leftAt commits what a process that died has left on a partition that it had finished up to an
// offset.
func leftAt(t *testing.T, k *consumertest.Kafka, topic string, partition int32, offset int64, evidence string) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		var at kadm.Offsets
		at.Add(kadm.Offset{Topic: topic, Partition: partition, At: max(offset, 0), LeaderEpoch: 0, Metadata: "siding 1 p=dead " + evidence})
		return cl.CommitAllOffsets(ctx, "billing", at)
	})
}

// said returns the metadata of the group's commit on a partition.
func said(k *consumertest.Kafka, topic string, partition int32) string {
	return k.Cluster.GroupInfo("billing").Commits[topic][partition].Metadata
}

// commitSaid commits for a group what a process said that died at offset 5. by moves the offset, as
// a tool does that keeps the metadata (a program on kadm: fetch, change At, commit).
func commitSaid(t *testing.T, k *consumertest.Kafka, group string, by int64, said offsets.Metadata) {
	t.Helper()
	admin(t, k, func(ctx context.Context, cl *kadm.Client) error {
		var at kadm.Offsets
		at.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 5 + by, LeaderEpoch: 0, Metadata: said.Encode(5, 4096)})
		return cl.CommitAllOffsets(ctx, group, at)
	})
}

// Retention deletes some records in front while no process runs, or the group is renamed: what the
// commit says of the others still holds.
func TestIsolator_KeepsWhatACommitSays(t *testing.T) {
	each(t, cases.Cross(map[string]offsets.Metadata{
		"finished":  {Finished: []offsets.Span{{First: 20, Last: 40}}},
		"condemned": {Evidence: offsets.Evidence{Process: 1, Deaths: 2, Suspect: 50, Condemned: []offsets.Alone{{Offset: 30}}}},
	}, map[string]string{"after retention": "billing", "of a former name": "invoices"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[offsets.Metadata, string]) {
		records := k.Produce(many(50)...)
		commitSaid(t, k, c.B, 0, c.A)
		var done ran
		cfg := config(done.after(fine))
		if c.B == "billing" {
			deleteRecords(t, k, "orders", 7)
		} else {
			cfg.FormerGroups = []string{c.B}
		}
		k.Run(cfg)
		time.Sleep(30 * time.Second)
		if a, b := done.times(records[30]), done.times(records[45]); a > 0 || b != 1 {
			t.Errorf("record 30 ran %d times, and record 45 %d times", a, b)
		}
	})
}

// An operator moves the group's offset with a tool that keeps the metadata. No record is skipped,
// and none is dead-lettered in place of another.
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
		commitSaid(t, k, "billing", c.by, c.said)
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

// A record that killed processes waits for a dead-letter topic that cannot be written. It runs in
// no process meanwhile, not after a restart, nor beside a retry topic that was made anew. Other
// lanes run.
func TestIsolator_CondemnedWaitsForItsLetter(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		guilty, others := k.Produce(onPartition(0, "fine", 10)...), k.Produce(onPartition(1, "fine", 100)...)
		left(t, k, "orders", 0, "n=2 s=10 c=3")
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.NotEnoughReplicas})
		var done ran
		cfg := config(done.after(fine))
		cfg.Order, cfg.DrainTimeout = order, time.Second
		for restarts := range 3 {
			c := k.Run(cfg)
			for range 3 {
				others = append(others, k.Produce(onPartition(1, "fine", 10)...)...)
				time.Sleep(30 * time.Second)
			}
			for _, r := range others {
				if done.times(r) == 0 {
					t.Fatalf("%d/%d has not run", r.Partition, r.Offset)
				}
			}
			if restarts < 2 {
				stop(t, c)
			}
		}
		k.DeleteTopic("orders.retry.300ms")
		k.CreateTopic("orders.retry.300ms", 2)
		time.Sleep(2 * time.Minute)
		fault.Remove()
		k.DeadLettered(guilty[3], headers.ReasonCrashLoop)
		time.Sleep(10 * time.Second)
		for _, r := range guilty {
			if n := done.times(r); n != 1 && r != guilty[3] || n != 0 && r == guilty[3] {
				t.Errorf("record %d ran %d times: %s", r.Offset, n, said(k, "orders", 0))
			}
		}
		holds(t, k, "orders.dlq", 1)
		k.Conserved()
	})
}

// A suspect whose handler ignores its timeout holds up its own partition only, whether it runs in a
// group or alone, and whether or not the others are suspects. It stays named until it returns.
func TestIsolator_StuckSuspectHoldsUpNoOtherLane(t *testing.T) {
	const alone = "n=2 s=3 g=AAM"
	each(t, cases.Cross(cases.Cross(orders, map[string]string{"in groups": "n=2 s=3", "alone": alone}),
		map[string]string{"others": "", "suspects in groups": "n=2 s=40", "suspects alone": "n=2 s=40 g=ACg"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, string], string]) {
			guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 40)...)
			left(t, k, "orders", 0, c.A.B)
			if c.B != "" {
				left(t, k, "orders", 1, c.B)
			}
			stuck, released := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			defer release()
			var done ran
			cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
				if r.Partition == 0 && r.Offset == 1 {
					close(stuck)
					<-released
				}
				return nil
			}))
			cfg.Order, cfg.Policy.HandlerTimeout = c.A.A, stuckTimeout
			k.Run(cfg)
			<-stuck
			time.Sleep(stuckTimeout + 4*time.Second)
			for range 10 {
				others = append(others, k.Produce(onPartition(1, "fine", 10)...)...)
				time.Sleep(time.Second)
			}
			for _, r := range others {
				if done.times(r) == 0 {
					t.Fatalf("%d/%d has not run: %s", r.Partition, r.Offset, said(k, "orders", 1))
				}
			}
			if text := said(k, "orders", 0); strings.Contains(text, " x=0") != (c.A.B == alone) || !strings.Contains(text, " g=") {
				t.Errorf("the commit says %q, want its record named as before", text)
			}
			release()
			done.all(t, guilty)
			eventually(t, "it is named no longer", func() bool { return !strings.Contains(said(k, "orders", 0), " x=") })
			holds(t, k, "orders.dlq", 0)
			k.Conserved()
		})
}

// After a decoder returns while others already go on, a commit says that its handler runs.
func TestIsolator_StuckDecoderIsToldFromItsHandler(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		guilty, others := k.Produce(onPartition(0, "guilty", 10)...), k.Produce(onPartition(1, "fine", 10)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		decode, release := make(chan struct{}), make(chan struct{})
		endDecoding, endHandling := sync.OnceFunc(func() { close(decode) }), sync.OnceFunc(func() { close(release) })
		defer endHandling() // also where the test fails
		defer endDecoding()
		var done ran
		cfg := config(consumer.Decode(func(_ context.Context, r *kgo.Record) (int, error) {
			if r.Partition == 0 && r.Offset == 1 {
				<-decode
			}
			return 0, nil
		}, func(ctx context.Context, r *kgo.Record, _ int) error {
			if r.Partition == 0 && r.Offset == 1 {
				<-release
			}
			return done.after(fine)(ctx, r)
		}))
		cfg.Policy.HandlerTimeout, cfg.Policy.Tiers = stuckTimeout, []time.Duration{tier1}
		k.Run(cfg)
		eventually(t, "it is decoded", func() bool { return strings.Contains(said(k, "orders", 0), " x=0d") })
		time.Sleep(stuckTimeout + 4*time.Second)
		done.all(t, others)
		endDecoding()
		// Its time is over: it goes to a retry topic, and is named no longer.
		k.Parked(guilty[1], tier1, "decode.timeout")
		eventually(t, "it is named no longer", func() bool { return !strings.Contains(said(k, "orders", 0), " x=") })
		endHandling()
		done.all(t, guilty)
	})
}

// The commits that say whether a record is being decoded take no time of its handler.
func TestIsolator_TellingTakesNoTimeOfTheHandler(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		k.Cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if p := req.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0]; p.Metadata != nil && strings.Contains(*p.Metadata, " x=") {
				k.Cluster.SleepControl(func() { time.Sleep(2 * time.Second) })
			}
			return nil, nil, false
		})
		guilty := k.Produce(many(3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		var done ran
		cfg := config(consumer.Decode(func(context.Context, *kgo.Record) (int, error) { return 0, nil },
			func(ctx context.Context, r *kgo.Record, _ int) error { return done.after(fine)(ctx, r) }))
		cfg.Policy.HandlerTimeout = time.Second
		k.Run(cfg)
		done.all(t, guilty)
		holds(t, k, "orders.retry.300ms", 0)
	})
}

// A handler that ignores a drain has not killed its process: its record is no dead letter.
func TestIsolator_StuckHandlerIsNoDeath(t *testing.T) {
	each(t, balancers, 1, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		records := k.Produce(many(3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		release := make(chan struct{})
		cfg := config(until(release))
		cfg.DrainTimeout = time.Second
		cfg.Kafka = opts
		c := k.Run(cfg)
		eventually(t, "it runs alone", func() bool { return strings.Contains(said(k, "orders", 0), " x=0") })
		_ = c.Err() // a StuckError
		if text := said(k, "orders", 0); strings.Contains(text, " x=") || !strings.Contains(text, " g=") {
			t.Errorf("the commit says %q, want its record among those that run one by one", text)
		}
		close(release)
		var done ran
		cfg.Handler = done.after(fine)
		k.Run(cfg)
		done.all(t, records)
		holds(t, k, "orders.dlq", 0)
	})
}

// A suspect that waits to be repeated in place, of a topic that is paused, holds up no other topic.
func TestIsolator_PausedSuspectHoldsUpNoOtherTopic(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=3", "alone": "n=2 s=3 g=AAM"}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
		k.CreateTopic("others", 1)
		k.Produce(many(3)...)
		left(t, k, "orders", 0, c.B)
		left(t, k, "others", 0, "n=2 s=3 g=AAM")
		for range 3 {
			k.Produce(&kgo.Record{Topic: "others", Value: []byte("x")})
		}
		failed := make(chan struct{}, 100)
		var others atomic.Int32
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Topic == "others" {
				others.Add(1)
				return nil
			}
			failed <- struct{}{}
			return classify.Retryable(errBusy)
		})
		cfg.Topics = []string{"orders", "others"}
		cfg.Order = c.A
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: time.Second, Max: time.Second}
		run := k.Run(cfg)
		<-failed
		run.Pause("orders")
		time.Sleep(10 * time.Minute)
		if n := others.Load(); n != 3 {
			t.Errorf("%d of 3 records of another topic have run within ten minutes", n)
		}
		run.Resume("orders")
	})
}

// A handler of a lane that the member lost ignores its context. The lanes of the next session run.
func TestIsolator_ZombieHoldsUpNoOtherLane(t *testing.T) {
	each(t, cases.Cross(cases.Cross(orders, balancers), map[string]time.Duration{"no timeout": -1, "an hour": time.Hour}), 2, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[cases.Pair[consumer.Order, []kgo.Opt], time.Duration]) {
		k.Produce(onPartition(0, "guilty", 3)...)
		left(t, k, "orders", 0, "n=2 s=3 g=AAM")
		stuck, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		var once atomic.Bool
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			if r.Partition == 0 && once.CompareAndSwap(false, true) {
				close(stuck)
				<-release
			}
			return nil
		}))
		cfg.Order, cfg.Kafka, cfg.Policy.HandlerTimeout = c.A.A, c.A.B, c.B
		cfg.DrainTimeout = time.Second
		k.Run(cfg)
		<-stuck
		// the member is silent for longer than its session
		var silent atomic.Bool
		silent.Store(true)
		k.Cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			switch req.(type) {
			case *kmsg.HeartbeatRequest, *kmsg.ConsumerGroupHeartbeatRequest:
				if silent.Load() {
					return nil, errors.New("silence"), true
				}
			}
			return nil, nil, false
		})
		time.Sleep(2 * time.Minute)
		silent.Store(false)
		others := k.Produce(onPartition(1, "fine", 10)...)
		time.Sleep(10 * time.Minute)
		n := 0
		for _, r := range others {
			n += min(1, done.times(r))
		}
		if n != 10 {
			t.Errorf("%d of 10 records of another partition have run; said %q", n, said(k, "orders", 0))
		}
		holds(t, k, "orders.dlq", 0)
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

// Suspects that fail strain their topic, so that an outage dead-letters none. They do not hold it:
// there would be no other records to probe with, since none overtakes a suspect.
func TestIsolator_SuspectsThatFailStrain(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=300", "alone": "n=2 s=300 g=AKwC"}), 1,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
			bad := k.Produce(onPartition(0, "bad", 300)...)
			left(t, k, "orders", 0, c.B)
			var failed atomic.Int64
			cfg := withBreaker(&service{})
			cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "bad" {
					failed.Add(1)
					_ = takes(ctx, 200*time.Millisecond) // else they are one sample to the guard
					r.Offset = -1                        // the record is the handler's
					return classify.Retryable(errBusy)
				}
				return nil
			}
			cfg.Order = c.A
			handled := watch(&cfg)
			opened := &changes{}
			cfg.Hooks = append(cfg.Hooks, opened)
			k.Run(cfg)
			records := k.Produce(onPartition(0, "fine", 100)...)
			time.Sleep(2 * time.Minute)
			for _, r := range records {
				if !handled(r) {
					t.Fatalf("offset %d has not run beside %d failures of %d suspects: %s", r.Offset, failed.Load(), len(bad), said(k, "orders", 0))
				}
			}
			if all := opened.list(); !slices.Equal(all, []string{"orders closed-strained"}) {
				t.Errorf("the topic's changes: %q", all)
			}
		})
}

// A topic that is held while suspects run probes without them, and they run after it.
func TestIsolator_SuspectsWaitInAHold(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=1000", "alone": "n=2 s=1000 g=AOgH", "both": "n=2 s=1000 g=AGQ"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
			s := &service{}
			s.down.Store(true)
			records := append(k.Produce(onPartition(0, "x", 1000)...), k.Produce(onPartition(1, "x", 1000)...)...)
			left(t, k, "orders", 0, c.B)
			cfg := withBreaker(s)
			cfg.Order = c.A
			handled := watch(&cfg)
			k.Run(cfg)
			time.Sleep(2 * time.Minute)
			s.down.Store(false)
			time.Sleep(10 * time.Minute)
			for _, r := range records {
				if !handled(r) {
					t.Fatalf("offset %d has not run: %s", r.Offset, said(k, "orders", 0))
				}
			}
			k.Conserved()
		})
}

// While no commit is accepted, a lane runs what the last one has named, says why it waits, and goes
// on when commits are accepted again.
func TestLane_WaitsWhileCommitsAreRefused(t *testing.T) {
	each(t, cases.Cross(orders, balancers), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, []kgo.Opt]) {
		var done ran
		cfg := config(done.after(fine))
		cfg.Order, cfg.Kafka = c.A, c.B
		run := k.Run(cfg)
		done.all(t, k.Produce(many(10)...))
		time.Sleep(time.Second)
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Count: -1, Err: kerr.NotCoordinator})
		records := k.Produce(many(2000)...)
		time.Sleep(time.Minute)
		n := 0
		for _, r := range records {
			n += done.times(r)
		}
		if n == 0 || n > 500 {
			t.Errorf("%d records ran without a commit, want a window", n)
		}
		if l := run.Health().Lanes[0]; l.State != consumer.StateBlocked || !strings.Contains(l.Why, "commit") || time.Since(l.Since) < 30*time.Second {
			t.Errorf("the lane is %+v, want it blocked by its commits", l)
		}
		fault.Remove()
		done.all(t, records)
		isOK(t, run)
	})
}

// Commits rest while a member joins, and a group waits for the slowest drain of another one. The
// lanes that are kept run on meanwhile.
func TestLane_RunsWhileAnotherMemberDrains(t *testing.T) {
	cases.Skip(t)
	each(t, map[string][]kgo.Opt{"cooperative": nil, "KIP-848": {kgo.ServerSideBalancer()}}, 6, func(t *testing.T, k *consumertest.Kafka, opts []kgo.Opt) {
		const drain = 20 * time.Second
		var slow atomic.Bool
		var done ran
		cfg := config(done.after(fine))
		cfg.DrainTimeout, cfg.Kafka = drain, opts
		slowly := cfg
		slowly.Handler = done.after(func(ctx context.Context, _ *kgo.Record) error {
			if slow.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		kept := k.Run(cfg)
		k.Run(slowly)
		time.Sleep(10 * time.Second)
		produced := func(during time.Duration) (all []*kgo.Record) {
			return steadily(k, 60, 50*time.Millisecond, during)
		}
		produced(5 * time.Second)
		slow.Store(true)
		before := map[int32]bool{}
		for _, l := range kept.Health().Lanes {
			before[l.Partition] = true
		}
		k.Begin(cfg)
		records := produced(drain - 5*time.Second)
		still := map[int32]bool{}
		for _, l := range kept.Health().Lanes {
			still[l.Partition] = before[l.Partition]
		}
		n, all := 0, 0
		for _, r := range records[len(records)/3:] {
			if still[r.Partition] {
				n += min(done.times(r), 1)
				all++
			}
		}
		if all == 0 || n*10 < all*9 {
			t.Errorf("%d of %d records of kept lanes ran while another member drained", n, all)
		}
		slow.Store(false)
	})
}

// A join without an answer for longer than a session: the group may have expelled the member. So
// its lanes start nothing that no commit has named.
func TestLane_StopsWhileAJoinHasNoAnswer(t *testing.T) {
	onOrders(t, 4, func(t *testing.T, k *consumertest.Kafka) {
		const session = 10 * time.Second
		var silent atomic.Bool
		thaw := make(chan struct{})
		k.Cluster.ControlKey(kmsg.JoinGroup.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if silent.Load() {
				k.Cluster.SleepControl(func() { <-thaw })
			}
			return nil, nil, false
		})
		var done ran
		cfg := config(done.after(fine))
		cfg.Kafka = []kgo.Opt{kgo.SessionTimeout(session), kgo.HeartbeatInterval(time.Second)}
		c := k.Run(cfg)
		steadily(k, 20, 50*time.Millisecond, 10*time.Second)
		silent.Store(true)
		growTopic(t, k, "orders", 5)
		for began := time.Now(); c.Health().Group.Joined; time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > 10*time.Minute {
				t.Fatal("the member does not join again")
			}
			k.Produce(many(2)...)
		}
		started := func(during time.Duration) (n int) {
			records := steadily(k, 20, 50*time.Millisecond, during)
			for _, r := range records {
				n += min(done.times(r), 1)
			}
			return n * 100 / len(records)
		}
		if got := started(session - time.Second); got < 70 {
			t.Errorf("%d %% of the records of kept lanes started within a session, want all", got)
		}
		time.Sleep(2 * time.Second)
		if got := started(session); got > 0 {
			t.Errorf("%d %% of the records started later, want none", got)
		}
		silent.Store(false)
		close(thaw)
	})
}
