package consumer_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
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
