package main

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// consume runs a consumer until done is closed, takes the report, and lets the consumer drain and
// commit.
func consume(ctx context.Context, cfg consumer.Config, done <-chan struct{}, rep func() report) (report, error) {
	return trial(ctx, cfg, func(ctx context.Context, c *running) (report, error) {
		if err := c.await(ctx, done); err != nil {
			return report{}, err
		}
		return rep(), nil
	})
}

// trial runs a consumer while the work takes the report, and then drains it. The context of the
// work ends when records cannot be offered.
func trial(ctx context.Context, cfg consumer.Config, work func(context.Context, *running) (report, error)) (report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	c.fail = cancel
	rep, err := work(ctx, c)
	if err != nil {
		return report{}, errors.Join(err, context.Cause(ctx), c.stop())
	}
	return rep, c.stop()
}

// errEnded is what becomes of work whose consumer is gone.
var errEnded = errors.New("the consumer ended before its work")

// running is a running consumer.
type running struct {
	*consumer.Consumer
	fail   context.CancelCauseFunc // of a trial
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
	r := &running{Consumer: c, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx)
	}()
	return r, nil
}

// offer writes the job's records in the background, at its rate.
func (r *running) offer(ctx context.Context, j job) {
	go func() {
		if err := offer(ctx, j, j.Offered); err != nil {
			r.fail(err)
		}
	}()
}

// await waits for all of what, in turn, unless the consumer ends before.
func (r *running) await(ctx context.Context, what ...<-chan struct{}) error {
	for _, next := range what {
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errors.Join(errEnded, r.err)
		}
	}
	return nil
}

// poll waits until the condition holds, which it looks at once in the interval.
func (r *running) poll(ctx context.Context, interval time.Duration, holds func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if is, err := holds(); is || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errors.Join(errEnded, r.err)
		}
	}
}

// after returns a channel that is closed after a time.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
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
