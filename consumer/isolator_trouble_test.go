package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

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

// While a dead-letter topic cannot be written, a record that killed processes waits for it. The
// other lanes of the process do not.
func TestIsolator_UnwritableLetterHoldsUpNoOtherLane(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		guilty, others := k.Produce(onPartition(0, "fine", 10)...), k.Produce(onPartition(1, "fine", 100)...)
		left(t, k, "orders", 0, "n=2 s=10 c=3")
		fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq", Count: -1, Err: kerr.NotEnoughReplicas})
		var done ran
		cfg := config(done.after(fine))
		cfg.Order = order
		k.Run(cfg)
		for range 10 {
			others = append(others, k.Produce(onPartition(1, "fine", 10)...)...)
			time.Sleep(30 * time.Second)
		}
		for _, r := range others {
			if done.times(r) == 0 {
				t.Fatalf("%d/%d has not run", r.Partition, r.Offset)
			}
		}
		fault.Remove()
		k.DeadLettered(guilty[3], headers.ReasonCrashLoop)
		done.all(t, append(guilty[:3:3], guilty[4:]...))
		if n := done.times(guilty[3]); n != 0 {
			t.Errorf("the record that kills ran %d times", n)
		}
		k.Conserved()
	})
}

// Before the next suspect runs, a commit says that the record before it is dead-lettered. Otherwise
// a further death would have it written again.
func TestIsolator_CommitsALetterBeforeTheNextRuns(t *testing.T) {
	each(t, orders, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		guilty, others := k.Produce(onPartition(0, "fine", 10)...), k.Produce(onPartition(1, "fine", 10)...)
		left(t, k, "orders", 0, "n=2 s=4 c=3")
		left(t, k, "orders", 1, "n=2 s=10")
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			dead := k.Cluster.PartitionInfo("orders.dlq", 0).HighWatermark > 0
			if text := said(k, "orders", 0); dead && strings.Contains(text, " c=") {
				t.Errorf("%d/%d runs while the commit says %q", r.Partition, r.Offset, text)
			}
			return nil
		}))
		cfg.Order, cfg.CommitInterval = order, time.Hour
		k.Run(cfg)
		k.DeadLettered(guilty[3], headers.ReasonCrashLoop)
		done.all(t, others)
		done.all(t, append(guilty[:3:3], guilty[4:]...))
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
			cfg.Handler = func(_ context.Context, r *kgo.Record) error {
				if string(r.Value) == "bad" {
					failed.Add(1)
					r.Offset = -1 // the record is the handler's
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

// While the breaker is open, a suspect that failed as a probe is tried behind the others. The end
// of the outage finds a group named of the first and the last ones. The isolator waited for ever
// for the last ones, which the others were in front of. Under OrderKey, the suspects came to stand
// behind a record of their key that waited for them.
func TestIsolator_GoesOnAfterAnOutage(t *testing.T) {
	cases.Skip(t)
	each(t, cases.Cross(orders, map[string]string{"all": "n=2 s=150", "some": "n=2 s=140"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
			s := &service{}
			s.down.Store(true)
			records := append(k.Produce(onPartition(0, "x", 150)...), k.Produce(onPartition(1, "x", 40)...)...)
			left(t, k, "orders", 0, c.B)
			suspects, _ := strconv.ParseInt(c.B[len("n=2 s="):], 10, 64)
			cfg := withBreaker(s)
			cfg.Order = c.A
			began := time.Now()
			cfg.Handler = func(ctx context.Context, r *kgo.Record) error {
				if r.Partition == 0 && time.Since(began) < time.Second {
					time.Sleep(time.Second) // the other lane opens the breaker
					return nil
				}
				if r.Partition == 0 && r.Offset == suspects-3 {
					defer s.down.Store(false)
				}
				return s.handle(ctx, r)
			}
			handled := watch(&cfg)
			k.Run(cfg)
			time.Sleep(30 * time.Minute)
			if s.down.Load() {
				t.Fatal("the last suspects have not run")
			}
			for _, r := range records {
				if !handled(r) {
					t.Fatalf("%d/%d has not run: %s", r.Partition, r.Offset, said(k, "orders", 0))
				}
			}
			k.Conserved()
		})
}

// A lane whose commits are refused cannot have its suspects named. None of them runs unnamed, and
// those of other lanes run.
func TestIsolator_RefusedCommitHoldsUpNoOtherLane(t *testing.T) {
	each(t, cases.Cross(orders, map[string]string{"in groups": "n=2 s=50", "alone": "n=2 s=50 g=ADI"}), 2,
		func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, string]) {
			refused, others := k.Produce(onPartition(0, "fine", 50)...), k.Produce(onPartition(1, "fine", 50)...)
			for p := range int32(2) {
				left(t, k, "orders", p, c.B)
			}
			var done ran
			var release atomic.Bool
			cfg := config(done.after(func(ctx context.Context, r *kgo.Record) error {
				for r.Offset == 0 && !release.Load() && ctx.Err() == nil {
					// so that the commit of the start is not refused
					time.Sleep(10 * time.Millisecond)
				}
				return ctx.Err()
			}))
			cfg.Order = c.A
			cfg.Policy.HandlerTimeout = time.Hour
			k.Run(cfg)
			time.Sleep(5 * time.Second)
			fault := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: "orders", Partitions: []int32{0}, Count: -1, Err: kerr.TopicAuthorizationFailed})
			release.Store(true)
			done.all(t, others)
			time.Sleep(time.Minute)
			n := 0
			for _, r := range refused {
				n += done.times(r)
			}
			if n == len(refused) {
				t.Errorf("all %d suspects ran, although no commit could name them", n)
			}
			more := k.Produce(onPartition(1, "fine", 500)...)
			done.all(t, more)
			fault.Remove()
			done.all(t, refused)
		})
}

// A record that has run alone is named no longer, also while the other suspects are not due.
// Otherwise a process that is killed later would have it dead-lettered.
func TestIsolator_NamesNoneThatHasRun(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const tier = "orders.retry.1h"
		var done ran
		cfg := config(done.after(busyOnce))
		cfg.Policy.Tiers, cfg.Policy.Jitter = []time.Duration{time.Hour}, -1
		first := k.Run(cfg)
		early := k.Produce(many(1)...)
		time.Sleep(10 * time.Minute)
		late := k.Produce(many(1)...)
		time.Sleep(time.Minute)
		stop(t, first)
		left(t, k, tier, 0, "n=2 s=2 g=AAE")
		cfg.CommitInterval = time.Hour
		k.Run(cfg)
		time.Sleep(50 * time.Minute)
		if done.times(early[0]) != 1 || done.times(late[0]) != 0 {
			t.Fatal("not the first one alone has run")
		}
		if text := said(k, tier, 0); strings.Contains(text, " x=") || !strings.Contains(text, " s=") {
			t.Errorf("after it has run, the commit says %q", text)
		}
		time.Sleep(10 * time.Minute)
		done.all(t, late)
	})
}

// A group that has run is named no longer once records of another lane are: one of these may kill.
func TestIsolator_NamesNoGroupThatHasRun(t *testing.T) {
	onOrders(t, 2, func(t *testing.T, k *consumertest.Kafka) {
		const of = 3
		var records []*kgo.Record
		for p := range 2 {
			records = append(records, k.Produce(onPartition(p, "x", of)...)...)
			left(t, k, "orders", int32(p), "n=2 s=3")
		}
		var done ran
		cfg := config(done.after(func(_ context.Context, r *kgo.Record) error {
			other := 1 - r.Partition
			if done.times(&kgo.Record{Partition: other, Offset: of - 1}) > 0 {
				if text := said(k, "orders", other); strings.Contains(text, " g=") {
					t.Errorf("while %d/%d runs, the commit of the lane that has run says %q", r.Partition, r.Offset, text)
				}
			}
			return nil
		}))
		cfg.CommitInterval = time.Hour
		k.Run(cfg)
		done.all(t, records)
	})
}

// In groups, records run at full concurrency over all lanes: a backlog takes no more than twice as
// long as without suspects, under any order.
func TestIsolator_GroupsRunAtFullConcurrency(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 50, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		took := func(evidence string) time.Duration {
			records := k.Produce(many(5000)...)
			var done ran
			cfg := config(done.after(func(context.Context, *kgo.Record) error {
				time.Sleep(5 * time.Millisecond)
				return nil
			}))
			cfg.Order, cfg.Concurrency = order, 64
			if evidence != "" {
				for p := range int32(50) {
					left(t, k, "orders", p, evidence)
				}
			}
			began := time.Now()
			c := k.Run(cfg)
			done.all(t, records)
			defer stop(t, c)
			return time.Since(began)
		}
		groups := took("n=2 s=500")
		plain := took("")
		if groups > 2*plain+time.Second {
			t.Errorf("in groups it took %v, otherwise %v", groups, plain)
		}
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

// From idle to thousands of records a second, and at a steady rate, the window costs a handful of
// commits.
func TestFeed_AsksForFewCommits(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 4, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		var mu sync.Mutex
		commits := 0
		k.Cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			mu.Lock()
			defer mu.Unlock()
			commits++
			return nil, nil, false
		})
		var done ran
		cfg := config(done.after(fine))
		cfg.Order, cfg.CommitInterval = order, time.Second
		k.Run(cfg)
		const seconds = 10
		for range 2 { // the second time from idle again
			time.Sleep(time.Minute)
			mu.Lock()
			commits = 0
			mu.Unlock()
			records := inBatches(k, seconds*20, 200, 50*time.Millisecond)
			done.all(t, records)
			mu.Lock()
			n := commits
			mu.Unlock()
			if t.Logf("%d commits", n); n > 4*seconds {
				t.Errorf("%d commits within %d s", n, seconds)
			}
		}
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

// A slow record among the suspects holds up its group no more than by half: else each group would
// take as long as its slowest record. The suspects of retry topics get their turn as well.
func TestIsolator_SlowRecordsHoldUpNoGroup(t *testing.T) {
	cases.Skip(t)
	each(t, orders, 7, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		keyed := func(n int) (all []*kgo.Record) {
			for i := range n {
				all = append(all, &kgo.Record{Topic: "orders", Key: fmt.Append(nil, "key-", i%1000), Value: fmt.Append(nil, i)})
			}
			return all
		}
		cfg := config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) })
		cfg.Order, cfg.MaxInFlight = order, 200
		cfg.Policy.Tiers, cfg.Policy.RetryBudget.Off = []time.Duration{time.Minute}, true
		parked := k.Produce(keyed(1400)...)
		c := k.Run(cfg)
		time.Sleep(10 * time.Second)
		stop(t, c)
		later := k.Produce(keyed(7000)...)
		for p := range int32(7) {
			for _, topic := range []string{"orders", "orders.retry.1m"} {
				at := k.Cluster.GroupInfo("billing").Commits[topic][p].Offset
				leftAt(t, k, topic, p, at, fmt.Sprintf("n=2 s=%d", k.Cluster.PartitionInfo(topic, p).HighWatermark))
			}
		}
		time.Sleep(time.Minute)
		var done ran
		cfg.Handler = done.after(func(ctx context.Context, r *kgo.Record) error {
			if r.Offset%100 == 99 {
				time.Sleep(time.Second)
			}
			return nil
		})
		began := time.Now()
		k.Run(cfg)
		done.all(t, append(parked, later...))
		// under OrderPartition, a slow record holds up what is behind it
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("all suspects have run after %v, want 20 s at most", took)
		}
	})
}
