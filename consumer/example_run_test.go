package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
)

// consume runs a consumer on the topic orders, which has these values, until ctx ends. It adds the
// group, the topic and the broker to cfg.
func consume(ctx context.Context, cfg consumer.Config, values ...string) error {
	brokers, stop := start(values...)
	defer stop()
	cfg.Group, cfg.Topics, cfg.Kafka, cfg.Logger = "billing", []string{"orders"}, []kgo.Opt{brokers}, slog.New(slog.DiscardHandler)
	c, err := consumer.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return c.Run(ctx)
}

// Pause and Resume hold a topic back at run time, for example while a database is maintained.
func ExampleConsumer_Pause() {
	brokers, stop := start("order-1")
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: []kgo.Opt{brokers}, Logger: slog.New(slog.DiscardHandler),
		Handler: func(_ context.Context, r *kgo.Record) error {
			fmt.Printf("%s: charged\n", r.Value)
			cancel()
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c.Pause("orders") // before Run too
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	<-c.Ready()
	fmt.Println(c.Health().Lanes[0].State)
	c.Resume("orders")
	if err := <-ended; err != nil {
		fmt.Println(err)
	}
	// Output:
	// paused
	// order-1: charged
}

// With OrderKey the records of one key run one after another, and different keys run concurrently.
func ExampleOrder() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	var mu sync.Mutex
	seen := map[string][]string{}
	left := 4
	cfg := consumer.Config{
		Order: consumer.OrderKey,
		Handler: func(_ context.Context, r *kgo.Record) error {
			mu.Lock()
			defer mu.Unlock()
			seen[string(r.Key)] = append(seen[string(r.Key)], string(r.Value))
			if left--; left == 0 {
				end()
			}
			return nil
		},
	}
	if err := consume(ctx, cfg, "cart-1=opened", "cart-2=opened", "cart-1=paid", "cart-2=closed"); err != nil {
		fmt.Println(err)
	}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		fmt.Println(key, seen[key])
	}
	// Output:
	// cart-1 [opened paid]
	// cart-2 [opened closed]
}

// Faults of milliseconds are retried in place. These runs are part of one delivery, and the
// partition waits for them.
func ExampleImmediate() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	runs := 0
	cfg := consumer.Config{
		Policy: consumer.Policy{Immediate: consumer.Immediate{Attempts: 3, Base: time.Millisecond}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			if runs++; runs < 3 {
				return classify.Retryable(errors.New("deadlock found, try again"))
			}
			fmt.Printf("%s: handled on run %d of attempt %d\n", r.Value, runs, consumer.DeliveryOf(ctx, r).Attempt)
			end()
			return nil
		},
	}
	if err := consume(ctx, cfg, "order-1"); err != nil {
		fmt.Println(err)
	}
	// Output: order-1: handled on run 3 of attempt 1
}

// A handler has to obey its context, which ends at the timeout. The cause distinguishes a timeout
// from a revoked lane.
func ExamplePolicy_timeout() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	cfg := consumer.Config{
		Policy: consumer.Policy{HandlerTimeout: 50 * time.Millisecond, Tiers: []time.Duration{100 * time.Millisecond}},
		Handler: func(ctx context.Context, r *kgo.Record) error {
			if consumer.DeliveryOf(ctx, r).Attempt == 2 {
				fmt.Println("the second time it is quick")
				end()
				return nil
			}
			<-ctx.Done() // a database that does not answer
			fmt.Println(ctx.Err(), errors.Is(context.Cause(ctx), consumer.ErrHandlerTimeout))
			return ctx.Err() // class timeout, retried
		},
	}
	if err := consume(ctx, cfg, "order-1"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// context deadline exceeded true
	// the second time it is quick
}

// The text of an error is written to headers, logs and spans. ErrorText removes secrets from it.
func ExampleConfig_errorText() {
	brokers, stop := start("order-1")
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: []kgo.Opt{brokers}, Logger: slog.New(slog.DiscardHandler),
		ErrorText: func(err error) string { return strings.ReplaceAll(err.Error(), "4111111111111111", "****") },
		Handler: func(context.Context, *kgo.Record) error {
			defer cancel()
			return errors.New("card 4111111111111111: refused")
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Run(ctx); err != nil {
		fmt.Println(err)
	}
	for letter, err := range dlq.Read(context.Background(), "orders.dlq", dlq.Filter{}, dlq.Cursor{}, brokers) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(letter.Meta.Message)
	}
	// Output: card ****: refused
}

// guard waits for a lane that halts.
type guard struct{ halted chan<- consumer.LaneChange }

func (g guard) OnLaneState(change consumer.LaneChange) {
	if change.To == consumer.StateStopped {
		g.halted <- change
	}
}

// If a record must not be skipped, its lane halts on it until an operator has decided. The other
// lanes go on.
func ExampleDisposition() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	halted := make(chan consumer.LaneChange, 1)
	go func() {
		change := <-halted
		fmt.Printf("%s/%d is %s: %s\n", change.Topic, change.Partition, change.To, change.Why)
		end()
	}()
	cfg := consumer.Config{
		// DeadLetter is the default, Discard the third
		Policy: consumer.Policy{OnTerminal: consumer.Stop},
		Hooks:  []consumer.Hook{guard{halted}},
		Handler: func(context.Context, *kgo.Record) error {
			return classify.As(errors.New("no such currency"), "payment.currency")
		},
	}
	if err := consume(ctx, cfg, "order-1", "order-2"); err != nil {
		fmt.Println(err)
	}
	// Output: orders/0 is stopped: halted on offset 0 of orders: payment.currency
}

// A group that is new on a topic begins at Config.Start. A group with committed offsets continues
// from them.
func ExampleStart() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	cfg := consumer.Config{
		Start: consumer.StartAt(time.Now().Add(-time.Minute)),
		Handler: func(_ context.Context, r *kgo.Record) error {
			fmt.Printf("%s is of the last minute\n", r.Value)
			end()
			return nil
		},
	}
	if err := consume(ctx, cfg, "order-1"); err != nil {
		fmt.Println(err)
	}
	// Output: order-1 is of the last minute
}

// A record without a route is dead-lettered with reason unroutable, unless it is to be dropped.
func ExampleMux_Otherwise() {
	mux := consumer.NewMux(consumer.ByTopic)
	mux.Handle("orders", func(context.Context, *kgo.Record) error { return nil })
	mux.Otherwise(consumer.DiscardUnroutable)
	result := (&classify.Classifier{}).Classify(mux.Serve(context.Background(), &kgo.Record{Topic: "clicks"}))
	fmt.Println(result.Class, result.Verdict)
	// Output: unroutable discard
}

// A handler that ignores its context cannot be ended. Run reports where it hangs, and its record
// runs again elsewhere.
func ExampleStuckError() {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	release := make(chan struct{})
	defer close(release)
	cfg := consumer.Config{
		DrainTimeout: 50 * time.Millisecond,
		Handler: func(context.Context, *kgo.Record) error {
			end()
			<-release // where it should have looked at its context
			return nil
		},
	}
	err := consume(ctx, cfg, "order-1")
	if stuck, ok := errors.AsType[*consumer.StuckError](err); ok {
		fmt.Println(stuck.Records[0])
	}
	// Output: orders/0/0
}
