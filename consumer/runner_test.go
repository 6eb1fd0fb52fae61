package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
)

// A handler that called runtime.Goexit, as a test's FailNow does, ended the worker's goroutine in
// the middle of a unit. The lane stood still, and with Concurrency 1 the whole consumer.
func TestRunner_GoexitFailsItsRecordOnly(t *testing.T) {
	each(t, orders, 1, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			if r.Offset%10 == 3 {
				runtime.Goexit()
			}
			return nil
		})
		cfg.Order, cfg.Concurrency = order, 1
		records := k.Produce(many(30)...)
		k.Run(cfg)
		for i, r := range records {
			if i%10 == 3 {
				k.DeadLettered(r, headers.ReasonPanic)
			} else {
				k.Handled(r, 1)
			}
		}
		k.Conserved()
	})
}

// An attempt that its lane's drain cancelled has not failed, whatever its handler returned. A
// terminal verdict would discard a record without a fault.
func TestRunner_DrainedAttemptIsNoFailure(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		started := make(chan struct{})
		cfg := config(func(ctx context.Context, _ *kgo.Record) error {
			close(started)
			<-ctx.Done()
			return errors.New("the gateway call was cancelled")
		})
		cfg.DrainTimeout, cfg.Policy.OnTerminal = 100*time.Millisecond, consumer.Discard
		c := k.Run(cfg)
		r := k.Produce(many(1)...)[0]
		<-started
		stop(t, c)
		k.Run(config(fine))
		k.Handled(r, 1)
		k.Conserved()
	})
}

// panickyLog is a log that panics on lines about records.
type panickyLog struct{ slog.Handler }

func (panickyLog) WithAttrs([]slog.Attr) slog.Handler { return panickyLog{slog.DiscardHandler} }
func (panickyLog) Enabled(context.Context, slog.Level) bool {
	return true
}

func (panickyLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "record") {
		panic("log")
	}
	return nil
}

// A log that panicked on the line about a parked record made it a dead letter.
func TestRunner_PanickingLogStopsNothing(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := config(busyOnce)
		cfg.Logger = slog.New(panickyLog{slog.DiscardHandler})
		k.Run(cfg)
		handledOnce(k, k.Produce(many(3)...))
		k.Conserved()
	})
}

// No handler runs between two in-place retries. The lane was reported as stuck, others had to wait
// for the slot, and a pause did not stop the next run.
func TestRunner_WaitInPlaceIsNoRun(t *testing.T) {
	each(t, map[string]consumer.Order{
		"partition": consumer.OrderPartition, "key": consumer.OrderKey,
	}, 2, func(t *testing.T, k *consumertest.Kafka, order consumer.Order) {
		const wait = 10 * time.Minute
		var mu sync.Mutex
		var ran []string
		done := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(ran)
		}
		running, most := 0, 0
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			running++
			most = max(most, running)
			again := slices.Contains(ran, string(r.Value))
			ran = append(ran, string(r.Value))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			if string(r.Value) == "waits" && !again {
				return classify.RetryAfter(errBusy, wait)
			}
			return nil
		})
		cfg.Order, cfg.Concurrency = order, 1
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: 1, Max: wait}
		c := k.Run(cfg)
		key := []byte("k")
		first := k.Produce(
			&kgo.Record{Topic: "orders", Key: key, Value: []byte("waits")}, &kgo.Record{Topic: "orders", Key: key, Value: []byte("behind")},
		)
		eventually(t, "the first run failed", func() bool { return len(done()) == 1 })
		time.Sleep(2 * time.Second)
		beside := k.Produce(&kgo.Record{Topic: "orders", Partition: 1, Value: []byte("beside")})
		k.Handled(beside[0], 1)
		time.Sleep(3 * time.Minute) // beyond the handler's timeout
		allAre(t, c, consumer.StateRunning)
		c.Pause("orders")
		time.Sleep(2 * wait)
		if got, want := done(), []string{"waits", "beside"}; !slices.Equal(got, want) {
			t.Errorf("ran %q, want %q: the topic is paused", got, want)
		}
		allAre(t, c, consumer.StatePaused)
		c.Resume("orders")
		handledOnce(k, first)
		if got, want := done(), []string{"waits", "beside", "waits", "behind"}; !slices.Equal(got, want) || most != 1 {
			t.Errorf("ran %q, %d at a time; want %q, one at a time", got, most, want)
		}
		k.Conserved()
	})
}

// Many lanes wait in place for few slots. Each gets its next run, and no more run at once than
// there are slots. A revoked lane does not wait for its worker to get a slot.
func TestRunner_LendsAndReclaimsItsSlot(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const lanes, slots = 20, 3
		k.CreateTopic("orders", lanes)
		var mu sync.Mutex
		running, most := 0, 0
		failed := map[int64]int{}
		cfg := config(func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			running--
			id := int64(r.Partition)<<32 | r.Offset
			if failed[id]++; failed[id] < 3 {
				return classify.Retryable(errBusy)
			}
			return nil
		})
		cfg.Concurrency = slots
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 2, Base: 100 * time.Millisecond, Max: 200 * time.Millisecond}
		c := k.Run(cfg)
		var records []*kgo.Record
		for i := range int32(lanes * 10) {
			records = append(records, &kgo.Record{Topic: "orders", Partition: i % lanes, Value: []byte("x")})
		}
		records = k.Produce(records...)
		time.Sleep(3 * time.Second)
		stop(t, c)
		k.Run(cfg)
		handledOnce(k, records)
		if most > slots {
			t.Errorf("%d handlers ran at once, want %d at most", most, slots)
		}
		k.Conserved()
	})
}

// A record that waits in place counted towards no bound of its lane, and lent its slot. So when the
// handler's database was down, all records were taken: 3,000 of 3,000, with four slots and room for
// 100 records.
func TestRunner_AsManyWaitInPlaceAsThereAreSlots(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		const slots = 4
		var runs atomic.Int64
		var over atomic.Bool
		cfg := config(func(context.Context, *kgo.Record) error {
			if runs.Add(1); over.Load() {
				return nil
			}
			return classify.RetryAfter(errBusy, 10*time.Minute)
		})
		cfg.Order, cfg.Concurrency, cfg.MaxInFlight = consumer.OrderNone, slots, 100
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 1, Base: 1, Max: 10 * time.Minute}
		c := k.Run(cfg)
		records := k.Produce(many(300)...)
		time.Sleep(5 * time.Minute)
		if l := c.Health().Lanes[0]; l.Running != 2*slots || runs.Load() != 2*slots {
			t.Errorf("%d records are in hand after %d runs, want %d of both", l.Running, runs.Load(), 2*slots)
		}
		over.Store(true)
		handledOnce(k, records)
		k.Conserved()
	})
}

// A handler called runtime.Goexit in a run that a deferred function repeated in place. Under
// OrderPartition its record was called again for ever; else it stayed pending. If an ordinary
// failure came before, the history lacked it.
func TestRunner_GoexitIsNotRepeatedInPlace(t *testing.T) {
	type calls struct {
		first func() error // of each delivery
		runs  int
	}
	each(t, cases.Cross(orders, map[string]calls{
		"goexit at once":        {func() error { runtime.Goexit(); return nil }, 1},
		"goexit after an error": {func() error { return classify.Retryable(errBusy) }, 2},
		"goexit after a panic":  {func() error { panic("x") }, 2},
	}), 1, func(t *testing.T, k *consumertest.Kafka, c cases.Pair[consumer.Order, calls]) {
		var runs atomic.Int64
		cfg := config(func(ctx context.Context, r *kgo.Record) error {
			if r.Offset != 1 {
				return nil
			}
			if n := runs.Add(1); n == 1 {
				return c.B.first()
			} else if n > 100 {
				return nil // the test has failed
			}
			runtime.Goexit()
			return nil
		})
		cfg.Order = c.A
		cfg.Policy.Immediate = consumer.Immediate{Attempts: 2}
		cfg.Classifier.Rules = []classify.Rule{classify.Type[*classify.PanicError](classify.VerdictRetry, "")}
		k.Run(cfg)
		records := k.Produce(many(3)...)
		m := k.DeadLettered(records[1], headers.ReasonExhausted)
		want := c.B.runs + 2 // one in each tier
		if n := int(runs.Load()); n != want || len(m.History) != want || m.Attempts != 3 {
			t.Errorf("%d calls, %d attempts, history %+v; want %d calls, all of them in the history", n, m.Attempts, m.History, want)
		}
		k.Handled(records[0], 1)
		k.Handled(records[2], 1)
		k.Conserved()
	})
}
