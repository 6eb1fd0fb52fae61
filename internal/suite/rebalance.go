package suite

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// rebalance: partitions that change hands, members that come and go.
var rebalance = map[string]func(*testing.T, *fixture){
	"a clean hand-over neither loses nor repeats": func(t *testing.T, f *fixture) {
		handle := func(ctx context.Context, r *kgo.Record) error {
			time.Sleep(time.Millisecond)
			if facts := consumer.FactsOf(ctx, r); facts.Attempt == 1 && facts.Original.Offset%5 == 0 {
				return classify.Retryable(errBusy)
			}
			return nil
		}
		// Without jitter a tier's records finish in the order of their offsets. With it, those that finished above the floor
		// run again under the next owner: only the floor is committed.
		cfg := f.config(handle)
		cfg.Policy.Jitter = -1
		first := f.Run(cfg)
		records := f.Produce(f.many(300)...)
		second := f.Run(cfg)
		eventually(t, "the second member has a partition", func() bool { return len(second.Health().Lanes) == 1 })
		records = append(records, f.Produce(f.many(300)...)...)
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		records = append(records, f.Produce(f.many(300)...)...)
		for _, r := range records {
			f.Handled(r, 1)
		}
		f.Conserved()
	},
	// Trap 2: records parked while a rebalance falls into their wait.
	"parked records wait on under the next owner": func(t *testing.T, f *fixture) {
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.FactsOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		first := f.Run(cfg)
		records := f.Produce(f.many(50)...)
		for _, r := range records {
			f.Parked(r, tier1, "")
			break
		}
		f.Run(cfg)
		if err := first.Stop(); err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			f.Handled(r, 1)
		}
		f.Conserved()
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
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if got := consumer.FactsOf(ctx, r).Attempt; got != 1 {
				t.Errorf("attempt %d after the restart, want 1", got)
			}
			return nil
		}))
		f.Handled(r, 1)
		f.Conserved()
	},
	"a handler that finishes within the drain time has succeeded": func(t *testing.T, f *fixture) {
		started, release := make(chan struct{}), make(chan struct{})
		c := f.Run(f.config(func(context.Context, *kgo.Record) error {
			close(started)
			<-release
			return nil
		}))
		r := f.Produce(f.record("x"))[0]
		<-started
		time.AfterFunc(200*time.Millisecond, func() { close(release) })
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
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
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
		f.DeadLettered(r, headers.ReasonTerminal)
		f.Run(f.config(handle))
		f.Handled(f.Produce(f.record("y"))[0], 1)
		if runs.Load() != 2 {
			t.Errorf("%d runs, want 2: the record ran again although its copy was safe", runs.Load())
		}
		f.Conserved()
	},
	"a handler that ignores its cancelling is named": func(t *testing.T, f *fixture) {
		started, release := make(chan struct{}), make(chan struct{})
		cfg := f.config(func(context.Context, *kgo.Record) error {
			close(started)
			<-release
			return nil
		})
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
	// Trap 16: marking after revoke.
	"members that come and go at random lose nothing": func(t *testing.T, f *fixture) {
		handle := func(ctx context.Context, r *kgo.Record) error {
			facts := consumer.FactsOf(ctx, r)
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
			if err := guest.Stop(); err != nil {
				t.Fatal(err)
			}
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
