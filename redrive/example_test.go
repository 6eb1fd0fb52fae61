package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// A fix was rolled out: the letters with that failure are redriven, and all succeed.
func Example() {
	s, err := startShop()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.stop()
	s.fixed.Store(true)

	ctx := context.Background()
	r, err := redrive.New(redrive.Config{Kafka: s.opts})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := r.Plan(ctx, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Classes: []string{"tax.TableMiss"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Letters, "letters to", plan.Targets)
	outcome, err := r.Run(ctx, plan, redrive.RunOptions{By: "ada", Why: "OPS-4711", Pace: redrive.Pace{Window: 100 * time.Millisecond}})
	// the window was shorter than the consumer takes to commit
	for err == nil && outcome.Counts.Pending > 0 {
		time.Sleep(50 * time.Millisecond)
		outcome, err = r.Status(ctx, "orders.dlq", outcome.ID)
	}
	fmt.Println(outcome.State, outcome.Counts.Succeeded, "succeeded,", err)
	// Output:
	// 3 letters to map[orders.retry.5s:3]
	// done 3 succeeded, <nil>
}

// The fix does not work: the run aborts at the first letter, and the others stay open.
func ExampleFailedAgainError() {
	s, err := startShop()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.stop()

	ctx := context.Background()
	r, err := redrive.New(redrive.Config{Kafka: s.opts})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := r.Plan(ctx, redrive.Selection{Topic: "orders.dlq"})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := r.Run(ctx, plan, redrive.RunOptions{By: "ada", Why: "OPS-4711"})
	if e, ok := errors.AsType[*redrive.FailedAgainError](err); ok {
		fmt.Println("aborted:", e.Cause)
		fmt.Println(outcome.Counts.Sent, "of", outcome.Counts.Selected, "sent")
	}
	// Output:
	// aborted: letter orders.dlq/0/0 failed again with tax.TableMiss
	// 1 of 3 sent
}

// shop is a service whose handler has a bug, and three dead letters already.
type shop struct {
	opts  []kgo.Opt
	fixed atomic.Bool
	stop  func()
}

func (s *shop) handle(_ context.Context, r *kgo.Record) error {
	if s.fixed.Load() {
		return nil
	}
	return classify.Terminal(classify.As(fmt.Errorf("no rate for %s", r.Value), "tax.TableMiss"))
}

func startShop() (*shop, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		return nil, err
	}
	s := &shop{opts: []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, stop: cluster.Close}
	c, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: s.opts, Handler: s.handle, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			fmt.Println(err)
		}
		cluster.Close()
	}
	cl, err := kgo.NewClient(s.opts...)
	if err != nil {
		return s, err
	}
	defer cl.Close()
	for _, region := range []string{"EU", "EU", "UK"} {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "orders", Value: []byte(region)}).FirstErr(); err != nil {
			return s, err
		}
	}
	letters, err := kgo.NewClient(append(s.opts, kgo.ConsumeTopics("orders.dlq"), kgo.UnknownTopicRetries(-1))...)
	if err != nil {
		return s, err
	}
	defer letters.Close()
	for n := 0; n < 3; n += letters.PollFetches(ctx).NumRecords() {
	}
	return s, nil
}
