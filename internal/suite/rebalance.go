package suite

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// rebalance: partitions that change their owner, members that join and leave.
var rebalance = map[string]func(*testing.T, *fixture){
	"a clean hand-over neither loses nor repeats": func(t *testing.T, f *fixture) {
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			time.Sleep(time.Millisecond)
			if facts := consumer.DeliveryOf(ctx, r); facts.Attempt == 1 && facts.Original.Offset%5 == 0 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		// Without jitter a tier's records finish in the order of their offsets. With it, records
		// that finished above the floor run again under the next owner: only the floor is
		// committed.
		cfg.Policy.Jitter = -1
		first := f.Run(cfg)
		records := f.Produce(f.many(300)...)
		second := f.Run(cfg)
		eventually(t, "the second member has a partition", func() bool { return len(second.Health().Lanes) == 1 })
		records = append(records, f.Produce(f.many(300)...)...)
		stop(t, first)
		records = append(records, f.Produce(f.many(300)...)...)
		f.handledOnce(records)
		f.Conserved()
	},
	// kgo leaves a group only after a join that is under way, which here waits for the other
	// member's handlers. A member that was gone by then got partitions, which no member read for a
	// session.
	"a member that ends within a rebalance gets no partition": func(t *testing.T, f *fixture) {
		release := make(chan struct{})
		cfg := f.config(func(context.Context, *kgo.Record) error {
			<-release
			return nil
		})
		cfg.DrainTimeout, cfg.Policy.HandlerTimeout = 30*time.Second, -1
		cfg.Kafka = []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())} // it revokes all before it joins
		stays := f.Run(cfg)
		records := f.Produce(f.many(20)...)
		running := func() bool { return stays.Health().Lanes[0].Running > 0 && stays.Health().Lanes[1].Running > 0 }
		eventually(t, "both lanes run records", running)
		c := f.Begin(cfg)
		eventually(t, "a lane drains", func() bool {
			return slices.ContainsFunc(stays.Health().Lanes, func(l consumer.LaneHealth) bool { return l.State == consumer.StateDraining })
		})
		began := time.Now()
		stop(t, c)
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("Run took %v to return, want it to wait for no join", took)
		}
		close(release)
		began = time.Now()
		eventually(t, "the member that stays has all lanes", func() bool {
			return slices.IndexFunc(stays.Health().Lanes, func(l consumer.LaneHealth) bool { return l.State == consumer.StateDraining }) < 0 &&
				len(stays.Health().Lanes) == 2
		})
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("that took %v, want less than a session", took)
		}
		f.handledOnce(records)
		f.Conserved()
	},
	// A member with another configuration, a canary, left a tier behind, and members that had
	// started before it never read that tier.
	"a tier of a member that left is drained by those that run on": func(t *testing.T, f *fixture) {
		const extra = 2 * time.Second
		release := make(chan struct{})
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "slow" {
				<-release // its lane takes over the tier meanwhile, and repeats nothing
			}
			return nil
		})
		stays := f.Run(cfg)
		canary := f.config(busy)
		canary.Policy.Tiers = append(canary.Policy.Tiers, extra)
		c := f.Run(canary)
		eventually(t, "each member has a lane", func() bool { return len(stays.Health().Lanes) == 1 && len(c.Health().Lanes) == 1 })
		lane, its := stays.Health().Lanes[0], c.Health().Lanes[0].Partition
		slow := f.record("slow")
		slow.Key = f.keyOf(lane.Partition)
		f.Produce(slow)
		eventually(t, "the slow record runs", func() bool { return stays.Health().Lanes[0].Running == 1 })
		r := f.record("x")
		r.Key = f.keyOf(its)
		f.Produce(r)
		f.Parked(r, extra, "")
		stop(t, c)
		eventually(t, "the tier is drained", func() bool {
			return f.committedNow(t, f.group, f.tierTopic(extra), its) == 1
		})
		eventually(t, "every lane has it", func() bool { return f.committedNow(t, f.group, f.tierTopic(extra), lane.Partition) == 0 })
		if h := stays.Health().Lanes[lane.Partition]; h.Running != 1 || !h.Since.Equal(lane.Since) {
			t.Errorf("the lane that was kept is %+v, want it to run on", h)
		}
		close(release)
		f.Handled(slow, 1)
		f.Conserved()
	},
	// Trap 2: a rebalance occurs while a record waits, and the record is dropped.
	"parked records wait on under the next owner": func(t *testing.T, f *fixture) {
		const tier = 15 * time.Second
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			switch facts := consumer.DeliveryOf(ctx, r); {
			case facts.Attempt == 1:
				return classify.Retryable(errBusy)
			case facts.Attempt > 2 || time.Now().UnixMilli() < facts.NotBefore.UnixMilli():
				t.Errorf("attempt %d at %v, due %v", facts.Attempt, time.Now(), facts.NotBefore)
			}
			return nil
		})
		cfg.Policy.Tiers = []time.Duration{tier}
		parked := func(c *consumertest.Consumer) (n int) {
			for _, l := range c.Health().Lanes {
				n += l.Parked
			}
			return n
		}
		first := f.Run(cfg)
		records := f.Produce(f.many(50)...)
		eventually(t, "all are parked", func() bool { return parked(first) == len(records) })
		second := f.Run(cfg)
		eventually(t, "the second member has its share", func() bool { n := parked(second); return n > 0 && n+parked(first) == len(records) })
		stop(t, first)
		f.handledOnce(records)
		f.Conserved()
	},
	// Trap 2: a hand-over occurs during the wait for an in-place retry, and the record is dropped.
	"a hand-over in the wait for a run in place loses nothing and counts nothing": func(t *testing.T, f *fixture) {
		failed := make(chan struct{}, 1)
		cfg := f.config(func(context.Context, *kgo.Record) error {
			failed <- struct{}{}
			return classify.Retryable(errBusy)
		})
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: 1000 * time.Hour, Max: 1000 * time.Hour}
		c := f.Run(cfg)
		r := f.Produce(f.record("x"))[0]
		<-failed
		stop(t, c)
		f.Run(f.config(onAttempt(t, 1)))
		f.Handled(r, 1)
		f.Conserved()
	},
	// Trap 1: a partition that was paused when it was revoked stays paused when it is assigned
	// again, since kgo's pause outlives the assignment.
	// Trap 5: the group is stable, the member heartbeats, and nothing is consumed.
	"a lane that was full when it changed hands reads on": func(t *testing.T, f *fixture) {
		cfg := f.config(ok)
		cfg.MaxInFlight = 10
		stay := f.Run(cfg)
		stay.Pause(f.topic) // so that no finished handler makes room
		records := f.Produce(f.many(300)...)
		eventually(t, "both lanes are full", func() bool {
			lanes := stay.Health().Lanes
			return len(lanes) == 2 && lanes[0].Queued >= 10 && lanes[1].Queued >= 10
		})
		cfg.Handler = func(ctx context.Context, _ *kgo.Record) error {
			<-ctx.Done()
			return ctx.Err()
		}
		cfg.DrainTimeout = 100 * time.Millisecond
		guest := f.Run(cfg)
		eventually(t, "each has a lane", func() bool { return len(guest.Health().Lanes) == 1 && len(stay.Health().Lanes) == 1 })
		stop(t, guest)
		eventually(t, "the lane is back", func() bool { return len(stay.Health().Lanes) == 2 })
		stay.Resume(f.topic)
		f.handledOnce(append(records, f.Produce(f.many(100)...)...))
		f.Conserved()
	},
	// Trap 32: one partition drains for its next owner, and the member does not read the partitions
	// that it keeps.
	"a lane that is kept reads on while another drains": func(t *testing.T, f *fixture) { keptReadsOn(t, f) },
	// Trap 32: the same where the broker assigns.
	"KIP-848: a lane that is kept reads on while another drains": func(t *testing.T, f *fixture) {
		keptReadsOn(t, f, kgo.ServerSideBalancer())
	},
	// Trap 17: a handler that is cancelled by shutdown has not failed.
	"an attempt cancelled by draining is no attempt": func(t *testing.T, f *fixture) {
		started := make(chan struct{}, 2)
		cfg := f.config(func(ctx context.Context, _ *kgo.Record) error {
			started <- struct{}{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), consumer.ErrDraining) {
				t.Errorf("cause %v, want ErrDraining", context.Cause(ctx))
			}
			return classify.Terminal(errors.New("the gateway call was cancelled"))
		})
		cfg.DrainTimeout = 100 * time.Millisecond
		c := f.Run(cfg)
		r := f.Produce(f.record("x"))[0]
		<-started
		stop(t, c)
		f.Run(f.config(onAttempt(t, 1)))
		f.Handled(r, 1)
		f.Conserved()
	},
	"a handler that finishes within the drain time has succeeded": func(t *testing.T, f *fixture) {
		handle, started, release := blocking()
		c := f.Run(f.config(handle))
		r := f.Produce(f.record("x"))[0]
		<-started
		time.AfterFunc(200*time.Millisecond, func() { close(release) })
		stop(t, c)
		f.Handled(r, 1)
		f.Run(f.config(ok))
		f.Handled(f.Produce(f.record("y"))[0], 1)
		f.Handled(r, 1)
		f.Conserved()
	},
	"a failure within the drain time is forwarded before the hand-over": func(t *testing.T, f *fixture) {
		started, release := make(chan struct{}), make(chan struct{})
		var runs atomic.Int32
		handle := func(context.Context, *kgo.Record) error {
			if runs.Add(1) == 1 {
				close(started)
				<-release
				return errors.New("no such SKU")
			}
			return nil
		}
		c := f.Run(f.config(handle))
		r := f.Produce(f.record("x"))[0]
		<-started
		time.AfterFunc(200*time.Millisecond, func() { close(release) })
		stop(t, c)
		f.DeadLettered(r, headers.ReasonTerminal)
		f.Run(f.config(handle))
		f.Handled(f.Produce(f.record("y"))[0], 1)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2: the record ran again although its copy was safe", runs.Load())
		}
		f.Conserved()
	},
	"a handler that ignores its cancelling is named": func(t *testing.T, f *fixture) {
		handle, started, release := blocking()
		cfg := f.config(handle)
		cfg.DrainTimeout = 100 * time.Millisecond
		c := f.Run(cfg)
		r := f.Produce(f.record("x"))[0]
		<-started
		var stuck *consumer.StuckError
		if err := c.Err(); !errors.As(err, &stuck) {
			t.Fatalf("Run returned %v, want a StuckError", err)
		}
		if at := stuck.Records; len(at) != 1 || at[0].Topic != r.Topic || at[0].Offset != r.Offset {
			t.Errorf("stuck on %v, want %s/%d/%d", at, r.Topic, r.Partition, r.Offset)
		}
		close(release)
		f.Handled(r, 1)
	},
	// Trap 16: a handler returns after its partition moved to another member. If its offset is
	// marked then, it rewinds the new owner's commits. The rest of its batch is repeated or lost.
	"what ends after a hand-over marks nothing": func(t *testing.T, f *fixture) {
		release := make(chan struct{})
		var ran [2]atomic.Int32 // by the first member
		cfg := f.config(func(_ context.Context, r *kgo.Record) error {
			ran[r.Partition].Add(1)
			<-release // ignores its context
			return nil
		})
		cfg.DrainTimeout = 100 * time.Millisecond
		first := f.Run(cfg)
		var batch []*kgo.Record
		for range 20 {
			batch = append(batch, &kgo.Record{Topic: f.topic, Key: f.keyOf(0)}, &kgo.Record{Topic: f.topic, Partition: 1})
		}
		f.Produce(batch...)
		eventually(t, "a record of each partition runs", func() bool { return ran[0].Load() == 1 && ran[1].Load() == 1 })
		second := f.Run(f.config(ok))
		eventually(t, "the second member has a partition", func() bool { return len(second.Health().Lanes) == 1 })
		moved := second.Health().Lanes[0].Partition
		for _, r := range batch {
			if r.Partition == moved {
				f.Handled(r, 1)
			}
		}
		f.committed(t, f.topic, moved, 20)
		close(release)
		for _, r := range batch {
			if r.Partition != moved {
				f.Handled(r, 1)
			}
		}
		f.committed(t, f.topic, 1-moved, 20)
		if n := ran[moved].Load(); n != 1 {
			t.Errorf("the first member ran %d records of the revoked partition, want the one in progress", n)
		}
		if at := f.committedNow(t, f.group, f.topic, moved); at != 20 {
			t.Errorf("%d is committed on the partition that went to the second member, want 20 as before", at)
		}
		stop(t, first)
		if at := f.committedNow(t, f.group, f.topic, moved); at != 20 {
			t.Errorf("%d is committed after the first member left, want 20 as before", at)
		}
		f.Conserved()
	},
	"members that come and go at random lose nothing": func(t *testing.T, f *fixture) {
		handle := func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.DeliveryOf(ctx, r)
			switch {
			case facts.Original.Offset%11 == 0:
				return classify.Retryable(errBusy)
			case facts.Original.Offset%7 == 0 && facts.Attempt == 1:
				return classify.Retryable(errBusy)
			case facts.Original.Offset%13 == 0:
				return errors.New("no such SKU")
			}
			time.Sleep(time.Millisecond)
			return nil
		}
		stay := f.Run(f.config(handle))
		for range 4 {
			f.Produce(f.many(200)...)
			guest := f.Run(f.config(handle))
			f.Produce(f.many(100)...)
			eventually(t, "the guest has a partition", func() bool { return len(guest.Health().Lanes) > 0 })
			stop(t, guest)
		}
		eventually(t, "all is done", func() bool {
			for _, l := range stay.Health().Lanes {
				for _, o := range l.Offsets {
					if o.Pending > 0 || o.Committed < o.Floor {
						return false
					}
				}
			}
			return len(stay.Health().Lanes) == 2
		})
		f.Conserved()
	},
}

// keptReadsOn has one of a member's two lanes drain for another member.
func keptReadsOn(t *testing.T, f *fixture, opts ...kgo.Opt) {
	t.Helper()
	release := make(chan struct{})
	var slow, quick atomic.Int32
	cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
		if string(r.Value) != "slow" {
			quick.Add(1)
			return nil
		}
		slow.Add(1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	cfg.Kafka, cfg.Order, cfg.DrainTimeout = opts, consumer.OrderNone, 20*time.Second
	on := func(partition int32, value string) *kgo.Record {
		if partition == 0 {
			return &kgo.Record{Topic: f.topic, Key: f.keyOf(0), Value: []byte(value)}
		}
		return &kgo.Record{Topic: f.topic, Partition: partition, Value: []byte(value)}
	}
	first := f.Run(cfg)
	f.Produce(on(0, "slow"), on(1, "slow"))
	eventually(t, "a record of each partition runs", func() bool { return slow.Load() == 2 })
	second := f.Begin(cfg)
	var kept int32
	drains := func() (drains bool) {
		for _, l := range first.Health().Lanes {
			if l.State == consumer.StateDraining {
				drains = true
			} else {
				kept = l.Partition
			}
		}
		return drains
	}
	eventually(t, "a lane drains", drains)
	for n := int32(1); n <= 20; n++ {
		f.Produce(on(kept, "quick"))
		eventually(t, "what comes to the lane that is kept is handled", func() bool { return quick.Load() == n })
	}
	if !drains() {
		t.Error("the lane that is kept was read when the other one had drained, want meanwhile")
	}
	close(release)
	eventually(t, "the second member has a partition", func() bool { return len(second.Health().Lanes) == 1 })
	f.Conserved()
}
