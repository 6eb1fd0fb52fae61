package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// policy: how often a record is tried, when, and where it goes in the end.
var policy = map[string]func(*testing.T, *fixture){
	"more attempts than tiers repeat the last tier": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.MaxAttempts = 5
		f.Run(cfg)
		m := f.DeadLettered(f.Produce(f.record("x"))[0], headers.ReasonExhausted)
		if m.Attempts != 5 || m.Hops != 5 {
			t.Errorf("attempts %d, hops %d; want 5, 5", m.Attempts, m.Hops)
		}
		f.Conserved()
	},
	"no tiers: one delivery, then the dead letter": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Tiers = []time.Duration{}
		f.Run(cfg)
		if m := f.DeadLettered(f.Produce(f.record("x"))[0], headers.ReasonExhausted); m.Attempts != 1 {
			t.Errorf("attempts %d, want 1", m.Attempts)
		}
		f.Conserved()
	},
	"MaxAge ends retries by the time since the first failure": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.MaxAttempts, cfg.Policy.MaxAge = 100, tier1+tier2
		f.Run(cfg)
		m := f.DeadLettered(f.Produce(f.record("x"))[0], headers.ReasonExpired)
		if age := m.FailedAt.Sub(m.FirstFailedAt); age < tier1+tier2 {
			t.Errorf("expired at the age of %v, want %v at least", age, tier1+tier2)
		}
		f.Conserved()
	},
	// Trap 20: the time for retries counts from when the record was written, and behind a backlog
	// the first failure is the last.
	"MaxAge does not count the time before the first failure": func(t *testing.T, f *fixture) {
		cfg := f.config(busyFor(2))
		cfg.Policy.MaxAge = time.Minute
		f.Run(cfg)
		r := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Timestamp: time.Now().Add(-24 * time.Hour)})[0]
		f.Parked(r, tier1, "")
		f.Parked(r, tier2, "")
		f.Handled(r, 1)
		f.Conserved()
	},
	"Immediate repeats in place and counts as one delivery": func(t *testing.T, f *fixture) {
		var runs atomic.Int32
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if got := consumer.DeliveryOf(ctx, r).Attempt; got != 1 {
				t.Errorf("attempt %d, want 1", got)
			}
			// The next run and the copy must not see what a handler assigns.
			r.Value = nil
			if runs.Add(1) <= 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 3, Base: time.Millisecond}
		f.Run(cfg)
		f.Handled(f.Produce(f.record("x"))[0], 1)
		if runs.Load() != 4 {
			t.Errorf("%d runs, want 4", runs.Load())
		}
		f.Conserved()
	},
	"after its in-place retries the record goes to its tier": func(t *testing.T, f *fixture) {
		cfg := f.config(busy)
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 2, Base: time.Millisecond}
		f.Run(cfg)
		if m := f.Parked(f.Produce(f.record("x"))[0], tier1, ""); m.Attempts != 1 {
			t.Errorf("attempts %d, want 1", m.Attempts)
		}
		f.Conserved()
	},
	"RetryAfter picks the first tier at least as long": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.RetryAfter(errBusy, tier1+100*time.Millisecond)
			}
			return nil
		}))
		r := f.Produce(f.record("x"))[0]
		m := f.Parked(r, tier2, "")
		if got := m.NotBefore.Sub(m.FailedAt); got < tier2 || got > tier2*11/10+time.Millisecond {
			t.Errorf("due %v after the failure, want the tier's delay, %v, to a tenth more", got, tier2)
		}
		f.Handled(r, 1)
		f.Conserved()
	},
	// Trap 33: a limiter's Retry-After replaces the tiers, and the attempts are used up at once.
	"RetryAfter shorter than the tiers skips none of them": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(context.Context, *kgo.Record) error { return classify.RetryAfter(errBusy, time.Millisecond) }))
		r := f.Produce(f.record("x"))[0]
		f.Parked(r, tier1, "")
		f.Parked(r, tier2, "")
		m := f.DeadLettered(r, headers.ReasonExhausted)
		if took := m.FailedAt.Sub(m.FirstFailedAt); took < tier1+tier2 || m.Attempts != 3 {
			t.Errorf("a dead letter after %v and %d attempts, want %v at least, and 3", took, m.Attempts, tier1+tier2)
		}
		f.Conserved()
	},
	"RetryAfter beyond the last tier waits there in one copy": func(t *testing.T, f *fixture) {
		asked := tier2*2 + 3*time.Second
		var second atomic.Int64
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.RetryAfter(errBusy, asked)
			}
			second.Store(time.Now().UnixMilli())
			return errors.New("enough")
		}))
		r := f.Produce(f.record("x"))[0]
		first := f.Parked(r, tier2, "")
		m := f.DeadLettered(r, headers.ReasonTerminal)
		if m.Attempts != 2 || m.Hops != 2 {
			t.Errorf("attempts %d, hops %d; want 2 attempts, and no copy but the one in the tier and the dead letter", m.Attempts, m.Hops)
		}
		if due := first.FailedAt.Add(asked).UnixMilli(); second.Load() < due {
			t.Errorf("the second attempt ran %d ms early", due-second.Load())
		}
		f.Conserved()
	},
	// Trap 30: a copy's timestamp comes from another clock than its due time, and the copy is
	// written again, or taken for malformed.
	"a copy with a timestamp that is far off waits for its due time in one copy": func(t *testing.T, f *fixture) {
		var mu sync.Mutex
		ran := map[int64]time.Time{}
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			if ran[r.Offset] = time.Now(); ran[r.Offset].Before(consumer.DeliveryOf(ctx, r).NotBefore) {
				t.Errorf("record %d ran before its due time", r.Offset)
			}
			return nil
		}))
		f.set(t, f.tierTopic(tier1), "message.timestamp.type", "CreateTime")
		now := time.Now()
		var copies []*kgo.Record
		for i, off := range []time.Duration{-8 * 24 * time.Hour, -100 * time.Hour, -9 * time.Second, 0, 30 * time.Minute} {
			m := f.copyOf(int64(i), 1, now)
			m.NotBefore = now.Add(4 * time.Second)
			copies = append(copies, &kgo.Record{Topic: f.tierTopic(tier1), Partition: 1, Timestamp: now.Add(off), Headers: m.Append(nil)})
		}
		f.Produce(copies...)
		eventually(t, "all ran", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(ran) == len(copies)
		})
		f.committed(t, f.tierTopic(tier1), 1, int64(len(copies)))
		if n := f.count(t, f.tierTopic(tier1)); n != int64(len(copies)) {
			t.Errorf("%d copies in the tier, want the %d that were there: none was written again", n, len(copies))
		}
		if n := f.count(t, f.topic+".dlq"); n != 0 {
			t.Errorf("%d dead letters, want none", n)
		}
	},
	"MaxRetryAfter caps what is asked for": func(t *testing.T, f *fixture) {
		cfg := f.config(func(context.Context, *kgo.Record) error { return classify.RetryAfter(errBusy, 100*time.Hour) })
		cfg.Policy.MaxRetryAfter = tier1
		f.Run(cfg)
		m := f.Parked(f.Produce(f.record("x"))[0], tier1, "")
		if got := m.NotBefore.Sub(m.FailedAt); got < tier1 || got > tier1*11/10+time.Millisecond {
			t.Errorf("due %v after the failure, want %v to a tenth more", got, tier1)
		}
	},
	"Discard drops the record and the partition goes on": func(t *testing.T, f *fixture) {
		f.Run(f.config(failingOn("x", classify.As(classify.Discard(errBusy), "double"))))
		x := f.Produce(f.record("x"))[0]
		f.Handled(f.Produce(f.record("y"))[0], 1)
		f.Discarded(x, "double")
		f.unhandled(t, x)
	},
	"Stop halts the lane, the others go on, a restart resumes": func(t *testing.T, f *fixture) {
		cfg := f.config(failingOn("x", errors.New("must not be skipped")))
		cfg.Policy.OnTerminal = consumer.Stop
		c := f.Run(cfg)
		f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("before")})
		records := f.Produce(&kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("x")}, &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("behind")})
		eventually(t, "the lane is stopped and health says so", func() bool {
			h := c.Health()
			for _, l := range h.Lanes {
				if l.Partition == 1 && l.State == consumer.StateStopped && l.Offsets[0].Committed == 1 {
					return !h.OK
				}
			}
			return false
		})
		other := &kgo.Record{Topic: f.topic, Key: f.keyOf(0), Value: []byte("other")}
		f.Handled(f.Produce(other)[0], 1)
		f.unhandled(t, records[1])
		stop(t, c)
		f.Run(f.config(ok))
		f.Handled(records[0], 1)
		f.Handled(records[1], 1)
		f.Conserved()
	},
	"a panic is routed and the process lives": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(_ context.Context, r *kgo.Record) error {
			if string(r.Value) == "7" {
				panic("index out of range")
			}
			return nil
		}))
		records := f.Produce(f.many(20)...)
		m := f.DeadLettered(records[7], headers.ReasonPanic)
		if m.Class != "panic.string" || m.Stack == "" {
			t.Errorf("class %q, stack %q; want panic.string and a stack", m.Class, m.Stack)
		}
		for i, r := range records {
			if i != 7 {
				f.Handled(r, 1)
			}
		}
		f.Conserved()
	},
	"what cannot be decoded is dead-lettered with its bytes": func(t *testing.T, f *fixture) {
		type order struct{ SKU string }
		f.Run(f.config(consumer.Decode(consumer.JSON[order], func(_ context.Context, _ *kgo.Record, o order) error {
			if o.SKU != "a" {
				t.Errorf("SKU %q, want a", o.SKU)
			}
			return nil
		})))
		records := f.Produce(f.record(`{"SKU":"a"}`), f.record(`{"SKU":`), &kgo.Record{Topic: f.topic, Key: []byte("key")})
		f.Handled(records[0], 1)
		for _, r := range records[1:] {
			if m := f.DeadLettered(r, headers.ReasonDecode); m.Class != classify.ClassDecode {
				t.Errorf("class %q, want decode", m.Class)
			}
		}
		f.Conserved()
	},
	"a handler's deadline is its own failure, class timeout, retried": func(t *testing.T, f *fixture) {
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), consumer.ErrHandlerTimeout) {
				t.Errorf("cause %v, want ErrHandlerTimeout", context.Cause(ctx))
			}
			if string(r.Value) == "cause" {
				return fmt.Errorf("charge: %w", context.Cause(ctx))
			}
			return fmt.Errorf("charge: %w", ctx.Err())
		})
		cfg.Policy.HandlerTimeout = 50 * time.Millisecond
		f.Run(cfg)
		for _, value := range []string{"error", "cause"} {
			r := f.Produce(f.record(value))[0]
			f.Parked(r, tier1, classify.ClassTimeout)
			f.Handled(r, 1)
		}
		f.Conserved()
	},
	// Trap 18: a timeout of the handler's own is taken for the shutdown, and the record is skipped.
	"what a handler cut off by itself has failed": func(t *testing.T, f *fixture) {
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt > 1 {
				return nil
			}
			own, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			switch string(r.Value) {
			case "canceled":
				cancel()
			case "draining":
				return consumer.ErrDraining // as from work shared with another lane's handler
			}
			<-own.Done()
			return own.Err()
		}))
		for _, tt := range []struct{ value, class string }{
			{"timeout", classify.ClassTimeout}, {"canceled", classify.ClassCanceled}, {"draining", classify.ClassCanceled},
		} {
			r := f.Produce(f.record(tt.value))[0]
			if m := f.Parked(r, tier1, tt.class); m.Attempts != 1 {
				t.Errorf("%s: parked after %d attempts, want 1", tt.value, m.Attempts)
			}
			f.Handled(r, 1)
		}
		f.Conserved()
	},
	"what was read comes back byte for byte": func(t *testing.T, f *fixture) {
		at := time.UnixMilli(time.Now().UnixMilli()).Add(-time.Minute)
		originals := []*kgo.Record{
			{Topic: f.topic, Partition: 1, Key: nil, Value: nil, Timestamp: at},
			{Topic: f.topic, Partition: 1, Key: []byte{}, Value: []byte{}, Timestamp: at},
			{Topic: f.topic, Partition: 1, Key: []byte{0, 0xff}, Value: []byte("v"), Timestamp: at, Headers: []kgo.RecordHeader{
				{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "", Value: nil}, {Key: "dlq-mine", Value: []byte{}},
			}},
		}
		var seen sync.Map // by offset: jitter changes the order
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 3 {
				seen.Store(r.Offset, r)
				return nil
			}
			r.Key, r.Value, r.Headers, r.Topic, r.Partition = []byte("changed"), nil, nil, "nowhere", 77
			return classify.Retryable(errBusy)
		}))
		for _, want := range f.Produce(originals...) {
			f.Handled(want, 1)
			v, _ := seen.Load(want.Offset)
			got, _ := v.(*kgo.Record)
			if got == nil {
				t.Fatalf("record %d did not come back under its own offset", want.Offset)
			}
			if !sameBytes(got.Key, want.Key) || !sameBytes(got.Value, want.Value) || !got.Timestamp.Equal(at) ||
				got.Topic != f.topic || got.Partition != 1 || got.Offset != want.Offset || len(got.Headers) != len(want.Headers) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
			for i, h := range want.Headers {
				if got.Headers[i].Key != h.Key || !sameBytes(got.Headers[i].Value, h.Value) {
					t.Errorf("header %d: got %v, want %v", i, got.Headers[i], h)
				}
			}
		}
		f.Conserved()
	},
	"Pause holds and Resume lets go": func(t *testing.T, f *fixture) {
		c := f.Run(f.config(ok))
		f.Handled(f.Produce(f.record("a"))[0], 1)
		c.Pause(f.topic)
		r := f.Produce(f.record("b"))[0]
		eventually(t, "the record is read, and waits", func() bool {
			l := c.Health().Lanes[r.Partition]
			return l.State == consumer.StatePaused && l.Queued == 1
		})
		f.unhandled(t, r)
		c.Resume(f.topic)
		f.Handled(r, 1)
		f.Conserved()
	},
	"what no route is for is dead-lettered as unroutable": func(t *testing.T, f *fixture) {
		mux := consumer.NewMux(consumer.ByHeader("type"))
		mux.Handle("charge", ok)
		f.Run(f.config(mux.Serve))
		charge := f.record("x")
		charge.Headers = []kgo.RecordHeader{{Key: "type", Value: []byte("charge")}}
		records := f.Produce(charge, f.record("y"))
		f.Handled(records[0], 1)
		f.DeadLettered(records[1], headers.ReasonUnroutable)
		f.Conserved()
	},
}
