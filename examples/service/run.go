package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/examples/service/billing"
)

// run charges the orders until the one that had to wait is paid, and lists the dead letters.
func run(ctx context.Context, out io.Writer) error {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		return fmt.Errorf("start the embedded broker: %w", err)
	}
	defer broker.Close()
	brokers := kgo.SeedBrokers(broker.ListenAddrs()...)
	if err := produce(ctx, brokers); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	pay := &gateway{out: out, asked: map[string]bool{}, charged: map[string]bool{}, paid: func(card string) {
		if card == "slow" {
			cancel() // the last order of this example
		}
	}}
	c, err := consumer.New(wire(&billing.Service{Gateway: pay}, brokers))
	if err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	if ctx.Err() == context.DeadlineExceeded {
		return errors.New("the last order was not charged in time")
	}
	for letter, err := range dlq.Read(context.WithoutCancel(ctx), "orders.dlq", dlq.Filter{}, dlq.Cursor{}, brokers) {
		if err != nil {
			return err
		}
		m := letter.Meta
		fmt.Fprintf(out, "dead letter: %s, %s, %s (%s)\n", m.Original, m.Reason, m.Class, m.Message)
	}
	return nil
}

func produce(ctx context.Context, brokers kgo.Opt) error {
	cl, err := kgo.NewClient(brokers, kgo.DefaultProduceTopic("orders"))
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, value := range []string{
		`{"id":"1","card":"good","cents":1900}`,
		`{"id":"2","card":"stolen","cents":500}`,
		`{"id":"3","card":`,
		`{"id":"4","cents":0}`,
		`{"id":"5","card":"slow","cents":2500}`,
	} {
		if err := cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}
