package suite

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/headers"
)

// order: which records may run at the same time, and which may not.
var order = map[string]func(*testing.T, *fixture){
	"by partition: one at a time and in order per partition": func(t *testing.T, f *fixture) {
		w := newWatch(t, func(r *kgo.Record) string { return fmt.Sprint(r.Partition) })
		w.ordered = true
		f.Run(f.config(w.handle(time.Millisecond, nil)))
		f.handledOnce(f.Produce(f.many(200)...))
		f.Conserved()
	},
	"by partition: a slow retry does not hold up its source": func(t *testing.T, f *fixture) {
		running, release := make(chan struct{}), make(chan struct{})
		f.Run(f.config(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) != "slow" {
				return nil
			}
			if consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return classify.Retryable(errBusy)
			}
			close(running)
			<-release
			return nil
		}))
		slow := f.Produce(f.record("slow"))[0]
		<-running
		f.handledOnce(f.Produce(f.record("a"), f.record("b")))
		close(release)
		f.Handled(slow, 1)
		f.Conserved()
	},
	"by key: one at a time per key, retries included, keys in parallel": func(t *testing.T, f *fixture) {
		w := newWatch(t, func(r *kgo.Record) string { return string(r.Key) })
		cfg := f.config(w.handle(5*time.Millisecond, func(ctx context.Context, r *kgo.Record) error {
			if facts := consumer.DeliveryOf(ctx, r); facts.Attempt == 1 && facts.Original.Offset%3 == 0 {
				return classify.Retryable(errBusy)
			}
			return nil
		}))
		cfg.Order, cfg.Concurrency = consumer.OrderKey, 20
		f.Run(cfg)
		f.handledOnce(f.Produce(f.many(300)...))
		if w.most() < 5 {
			t.Errorf("at most %d handlers at a time over 20 keys: keys do not run in parallel", w.most())
		}
		f.Conserved()
	},
	// Trap 10: a null key is no key, an empty key is one.
	"by key: null keys are free, an empty key is a key": func(t *testing.T, f *fixture) {
		var running sync.WaitGroup
		running.Add(3)
		all := make(chan struct{})
		w := newWatch(t, func(r *kgo.Record) string { return "empty" })
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if r.Key != nil {
				return w.handle(5*time.Millisecond, nil)(ctx, r)
			}
			running.Done() // returns only if three null keys run at once
			<-all
			return nil
		})
		cfg.Order = consumer.OrderKey
		f.Run(cfg)
		null := func() *kgo.Record { return &kgo.Record{Topic: f.topic, Partition: 1, Value: []byte("x")} }
		empty := func() *kgo.Record {
			return &kgo.Record{Topic: f.topic, Partition: 1, Key: []byte{}, Value: []byte("x")}
		}
		records := f.Produce(null(), null(), null(), empty(), empty(), empty())
		running.Wait()
		close(all)
		f.handledOnce(records)
		f.Conserved()
	},
	"without order: bounded by Concurrency alone": func(t *testing.T, f *fixture) {
		w := newWatch(t, func(r *kgo.Record) string { return fmt.Sprint(r.Partition, r.Offset) })
		cfg := f.config(w.handle(5*time.Millisecond, nil))
		cfg.Order, cfg.Concurrency = consumer.OrderNone, 8
		f.Run(cfg)
		f.handledOnce(f.Produce(f.many(200)...))
		if got := w.most(); got != 8 {
			t.Errorf("at most %d handlers at a time, want 8", got)
		}
		f.Conserved()
	},
	"Concurrency 1 by partition: lanes take turns": func(t *testing.T, f *fixture) {
		w := newWatch(t, func(*kgo.Record) string { return "" })
		cfg := f.config(w.handle(time.Millisecond, nil))
		cfg.Concurrency = 1
		f.Run(cfg)
		f.handledOnce(f.Produce(f.many(100)...))
		f.Conserved()
	},
	// Trap 9: with concurrent handlers only the floor is committed.
	"a crash with records in flight loses none of them": func(t *testing.T, f *fixture) {
		block := make(chan struct{})
		cfg := f.config(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "0" {
				select {
				case <-block:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		cfg.Order = consumer.OrderNone
		cfg.DrainTimeout = 100 * time.Millisecond
		c := f.Run(cfg)
		records := make([]*kgo.Record, 50)
		for i := range records {
			records[i] = &kgo.Record{Topic: f.topic, Partition: 1, Value: fmt.Append(nil, i)}
		}
		f.Produce(records...)
		f.handledOnce(records[1:])
		time.Sleep(300 * time.Millisecond) // several commit intervals
		if at := f.committedNow(t, f.group, f.topic, 1); at != 0 {
			t.Errorf("%d is committed while record 0 runs", at)
		}
		stop(t, c)
		close(block)
		f.Run(f.config(ok))
		f.Handled(records[0], 1)
		f.Conserved()
	},
	"order none: failures find their way as well": func(t *testing.T, f *fixture) {
		cfg := f.config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) })
		cfg.Order = consumer.OrderNone
		f.Run(cfg)
		for _, r := range f.Produce(f.many(20)...) {
			f.DeadLettered(r, headers.ReasonExhausted)
		}
		f.Conserved()
	},
}

// watch fails the test if two records run at the same time that must not.
type watch struct {
	t       *testing.T
	of      func(*kgo.Record) string
	ordered bool // offsets of one kind must ascend

	mu      sync.Mutex
	running map[string]bool
	last    map[string]int64
	now     int
	max     int
}

func newWatch(t *testing.T, of func(*kgo.Record) string) *watch {
	return &watch{t: t, of: of, running: map[string]bool{}, last: map[string]int64{}}
}

func (w *watch) handle(takes time.Duration, then consumer.Handler) consumer.Handler {
	return func(ctx context.Context, r *kgo.Record) error {
		kind := w.of(r)
		w.mu.Lock()
		if w.running[kind] {
			w.t.Errorf("two records of %q run at the same time", kind)
		}
		if last, seen := w.last[kind]; w.ordered && seen && r.Offset <= last {
			w.t.Errorf("record %d of %q runs after %d", r.Offset, kind, last)
		}
		w.running[kind], w.last[kind] = true, r.Offset
		w.now++
		w.max = max(w.max, w.now)
		w.mu.Unlock()
		time.Sleep(takes)
		w.mu.Lock()
		w.running[kind] = false
		w.now--
		w.mu.Unlock()
		if then != nil {
			return then(ctx, r)
		}
		return nil
	}
}

func (w *watch) most() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.max
}
