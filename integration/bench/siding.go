package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
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

// siblingsOf are those of a job's group. The names of a bench have no fault.
func siblingsOf(j job, tiers ...time.Duration) retrytopics.Siblings {
	named, _ := groupNaming.Siblings(j.Data.Topic, j.Group, tiers...)
	return named
}

// consume runs a consumer until done is closed, takes the report, and lets the consumer drain and
// commit.
func consume(ctx context.Context, cfg consumer.Config, done <-chan struct{}, rep func() report) (report, error) {
	return trial(ctx, cfg, func(c *running) report {
		c.await(done)
		return rep()
	})
}

// paced is a trial in which the job's records are written at its rate, from when the consumer is
// ready.
func paced(ctx context.Context, cfg consumer.Config, m *meter, j job, work func(*running) report) (report, error) {
	return trial(ctx, cfg, func(c *running) report {
		c.await(c.Ready())
		m.begin()
		c.produce(j)
		return work(c)
	})
}

// trial runs a consumer while the work takes the report, and then drains it. It fails if a step of
// the work does.
func trial(ctx context.Context, cfg consumer.Config, work func(*running) report) (report, error) {
	c, err := start(ctx, cfg)
	if err != nil {
		return report{}, err
	}
	rep := work(c)
	if err := errors.Join(c.failed, context.Cause(c.ctx), c.stop()); err != nil {
		return report{}, err
	}
	return rep, nil
}

// errEnded is what becomes of work whose consumer is gone.
var errEnded = errors.New("the consumer ended before its work")

// running is a running consumer with the steps of a trial. Once one has failed, the further ones do
// nothing.
type running struct {
	*consumer.Consumer
	ctx    context.Context // ends when records cannot be written
	fail   context.CancelCauseFunc
	failed error // the first step that did
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // of Run, once ended
}

func start(ctx context.Context, cfg consumer.Config) (*running, error) {
	c, err := consumer.New(cfg)
	if err != nil {
		return nil, err
	}
	r := &running{Consumer: c, ended: make(chan struct{})}
	r.ctx, r.fail = context.WithCancelCause(ctx)
	ctx, r.cancel = context.WithCancel(r.ctx)
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx)
	}()
	return r, nil
}

// do makes a step.
func (r *running) do(step func() error) {
	if r.failed == nil {
		r.failed = step()
	}
}

// produce writes the job's records in the background, at its rate.
func (r *running) produce(j job) {
	if r.failed != nil {
		return
	}
	go func() {
		if err := produce(r.ctx, j, j.Offered); err != nil {
			r.fail(err)
		}
	}()
}

// await waits for all of what, in turn, unless the consumer ends before.
func (r *running) await(what ...<-chan struct{}) {
	for _, next := range what {
		r.do(func() error { return r.until(next) })
	}
}

func (r *running) until(next <-chan struct{}) error {
	select {
	case <-next:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-r.ended:
		return errors.Join(errEnded, r.err)
	}
}

// poll waits until the condition holds, which it looks at once in the interval.
func (r *running) poll(interval time.Duration, holds func() (bool, error)) {
	r.do(func() error {
		for {
			if is, err := holds(); is || err != nil {
				return err
			}
			if err := r.until(after(interval)); err != nil {
				return err
			}
		}
	})
}

// after returns a channel that is closed after a time.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// stop drains the consumer.
func (r *running) stop() error {
	defer r.fail(nil)
	r.cancel()
	<-r.ended
	if r.err != nil {
		return fmt.Errorf("draining: %w", r.err)
	}
	return nil
}

// sidingConsume does with siding what bareConsume does without. With
// telemetry the metrics are collected once a second meanwhile.
func sidingConsume(ctx context.Context, j job) (report, error) {
	var m meter
	p := newProgress(j.Data, m.begin)
	handle := handler(j, p)
	cfg := sidingConfig(j)
	cfg.Order = j.Order
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		handle(r)
		return nil
	}
	var rep report
	work := func() (err error) {
		rep, err = consume(ctx, cfg, p.done, func() report { return m.end(j.Data.records()) })
		return err
	}
	cfg.AttemptTelemetryOff = j.Off
	if !j.Metrics && !j.Spans {
		err := work()
		return rep, err
	}
	t := newTelemetry()
	if j.Metrics {
		cfg.MeterProvider = t.meters
	}
	if j.Spans {
		cfg.TracerProvider = t.tracers
	}
	// A reader of metrics does that too, only less often.
	err := meanwhile(ctx, time.Second, func(ctx context.Context) error { _, err := t.sums(ctx); return err }, work)
	return rep, err
}

// sidingKeyed does in the job's order what barePool does in no order.
func sidingKeyed(ctx context.Context, j job) (report, error) {
	var (
		m     meter
		total = j.Data.records()
		left  atomic.Int64
		crowd crowd
		done  = make(chan struct{})
	)
	left.Store(total)
	cfg := sidingConfig(j)
	cfg.Order, cfg.Concurrency = j.Order, j.Slots
	cfg.Handler = func(_ context.Context, r *kgo.Record) error {
		m.begin()
		crowd.enter()
		time.Sleep(nap(index(r), j.Nap))
		crowd.leave()
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}
	return consume(ctx, cfg, done, func() report {
		rep := m.end(total)
		rep.AtOnce = crowd.most.Load()
		return rep
	})
}

// failingTier is so long that nothing falls due while the bench runs.
const failingTier = time.Hour

// errUnavailable and errRefused are what the failing handler returns.
var (
	errUnavailable = classify.As(classify.Retryable(errors.New(failingMessage)), failingClass)
	errRefused     = classify.As(classify.Terminal(errors.New(failingMessage)), failingClass)
)

// sidingBridge lets every record fail into the first tier, or with Dead into
// the dead-letter topic, and is done when all copies are acknowledged and the
// source's offsets are committed. With Whole it also waits until the tier was
// read to its end.
func sidingBridge(ctx context.Context, j job) (report, error) {
	var m meter
	cfg := sidingConfig(j)
	cfg.Kafka = append(cfg.Kafka, kgo.ProducerBatchCompression(kgo.NoCompression()))
	cfg.Naming = groupNaming
	cfg.Policy.Tiers = []time.Duration{failingTier}
	cfg.Policy.Breaker.Off = true // every record fails
	to, refusal := siblingsOf(j, failingTier).Tiers[0].Topic, errUnavailable
	if j.Dead {
		to, refusal = siblingsOf(j, failingTier).DLQ, errRefused
	}
	cfg.Handler = func(context.Context, *kgo.Record) error {
		m.begin()
		return refusal
	}
	// Draining commits; it returns when the broker has answered.
	if _, err := trial(ctx, cfg, func(c *running) report {
		if j.Whole {
			c.parked(j.Data.records())
		} else {
			c.written(j, to, j.Data.records())
		}
		return report{}
	}); err != nil {
		return report{}, err
	}
	return m.end(j.Data.records()), nil
}

// parked waits until the consumer's health counts so many parked records: the consumer has read
// them from the tier, and they wait for their time.
func (r *running) parked(records int64) {
	r.poll(10*time.Millisecond, func() (bool, error) {
		n := int64(0)
		for _, lane := range r.Health().Lanes {
			n += int64(lane.Parked)
		}
		return n >= records, nil
	})
}

// written waits until the topic holds so many records.
func (r *running) written(j job, topic string, records int64) {
	r.do(func() error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(j.Seeds...), kgo.MetadataMinAge(50*time.Millisecond))
		if err != nil {
			return err
		}
		defer cl.Close()
		admin := kadm.NewClient(cl)
		for {
			ends, err := admin.ListEndOffsets(r.ctx, topic)
			if err != nil {
				return fmt.Errorf("reading the end of %s: %w", topic, err)
			}
			var n int64
			ends.Each(func(o kadm.ListedOffset) {
				if o.Err == nil { // the topic may not be there yet
					n += o.Offset
				}
			})
			if n >= records {
				return nil
			}
			if err := r.until(after(10 * time.Millisecond)); err != nil {
				return err
			}
		}
	})
}
