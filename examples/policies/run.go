package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
)

// run passes the records to the handler. It prints the deliveries, and siding's log of how they
// end.
func run(ctx context.Context, out io.Writer) error {
	const divide = 1000
	topics := configure(divide).Topics
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topics...))
	if err != nil {
		return fmt.Errorf("start the embedded broker: %w", err)
	}
	defer broker.Close()
	brokers := kgo.SeedBrokers(broker.ListenAddrs()...)
	if err := produce(ctx, brokers); err != nil {
		return err
	}
	out = &lines{w: out}

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cfg := configure(divide)
	cfg.Kafka = []kgo.Opt{brokers}
	cfg.Handler = (&handler{out: out, divide: divide, over: cancel}).handle
	// siding logs dead letters, discarded records and halted lanes as warnings and errors.
	cfg.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: withoutTime}))
	c, err := consumer.New(cfg)
	if err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	if ctx.Err() == context.DeadlineExceeded {
		return errors.New("not every record was finished in time")
	}
	return nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// lines lets the handlers and the logger share a writer.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(line)
}

func produce(ctx context.Context, brokers kgo.Opt) error {
	cl, err := kgo.NewClient(brokers, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, records()...).FirstErr()
}
