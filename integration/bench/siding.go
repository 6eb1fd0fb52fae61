package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/retrytopics"
)

// groupNaming keeps the siblings of each round's group apart, though all
// rounds read one source.
var groupNaming = retrytopics.Naming{
	Retry:  "{topic}.retry.{group}.{delay}",
	DLQ:    "{topic}.dlq.{group}",
	Ledger: "{topic}.dlq.ledger.{group}",
}

// sidingConfig is what all siding programs start from: the defaults.
func sidingConfig(j job) consumer.Config {
	return consumer.Config{
		Group:  j.Group,
		Topics: []string{j.Data.Topic},
		Kafka:  []kgo.Opt{kgo.SeedBrokers(j.Seeds...)},
	}
}

// consume runs a consumer until done is closed, takes the report, and lets
// the consumer drain and commit.
func consume(ctx context.Context, cfg consumer.Config, done <-chan struct{}, rep func() report) (report, error) {
	running, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	if err := running.await(ctx, done); err != nil {
		return report{}, errors.Join(err, running.stop())
	}
	r := rep()
	return r, running.stop()
}

// running is a running consumer.
type running struct {
	ready  <-chan struct{}
	health func() consumer.Health
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Run, once ended
}

func start(ctx context.Context, cfg consumer.Config) (*running, error) {
	c, err := consumer.New(cfg)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{ready: c.Ready(), health: c.Health, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx)
	}()
	return r, nil
}

// await waits for what, unless the consumer ends before.
func (r *running) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-r.ended:
		return errors.Join(errors.New("the consumer ended before its work"), r.err)
	}
}

// stop drains the consumer.
func (r *running) stop() error {
	r.cancel()
	<-r.ended
	if r.err != nil {
		return fmt.Errorf("draining: %w", r.err)
	}
	return nil
}
