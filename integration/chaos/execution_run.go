package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/integration/chaos/internal/brokers"
	"github.com/sidingkafka/siding/integration/chaos/internal/check"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
	"github.com/sidingkafka/siding/internal/leak"
)

func newExecution(cfg Config) (_ *execution, err error) {
	e := &execution{cfg: cfg, mark: leak.New().Mark(""), faults: map[string]int{}}
	e.healing, e.heal = context.WithCancel(context.Background())
	switch cfg.Broker {
	case BrokerKafka:
		e.brokers, err = brokers.StartKafka(context.Background())
	case BrokerOwn:
		e.brokers = brokers.Own(cfg.Kafka)
	default:
		e.brokers, err = brokers.StartEmbedded(filepath.Join(cfg.Dir, "broker"), filepath.Join(cfg.Dir, "broker.log"), cfg.defect)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.brokers.Close())
		}
	}()
	e.plan = newPlan(cfg, possible(e.brokers.Can()))
	e.crew = &crew{cfg: cfg, services: e.plan.services, mark: e.mark, seeds: e.brokers.Seeds, logf: e.logf, tiers: map[int][]time.Duration{}}
	if e.cl, err = kgo.NewClient(e.direct()...); err != nil {
		return nil, err
	}
	e.adm = kadm.NewClient(e.cl)
	e.load = &load{mark: e.mark, poisons: e.plan.poisons, opts: e.direct(), cfg: cfg, services: e.plan.services, rnd: rand.New(rand.NewPCG(cfg.Seed, 2)), acked: map[int64]trace.Written{}, lost: map[int64]bool{}, refused: map[string]int{}}
	if err := e.load.connect(); err != nil {
		return nil, err
	}
	if e.samples, err = os.Create(filepath.Join(cfg.Dir, "samples")); err != nil {
		return nil, err
	}
	e.sampler = &sampler{file: e.samples, adm: e.adm, services: e.plan.services, tiers: everyTier()}
	return e, nil
}

func (e *execution) run(ctx context.Context) (*Report, error) {
	began := time.Now()
	e.logf("seed %d, %v, broker %s\n%s", e.cfg.Seed, e.cfg.Duration, e.cfg.Broker, e.plan)
	if err := e.prepare(ctx); err != nil {
		return nil, err
	}
	observing, unobserve := context.WithCancel(ctx)
	defer unobserve()
	var observer sync.WaitGroup
	observer.Go(func() { e.sampler.run(observing) })
	var lateness Lateness
	if err := e.work(ctx, began, &lateness); err != nil {
		return nil, err
	}
	healed := time.Now()
	e.logf("%v: %d records written, %d faults; waiting until all of them have an end", time.Since(began).Round(time.Second), e.load.sent.Load(), len(e.plan.steps))
	for why, n := range e.load.refused {
		e.logf("%d records could not be written: %s", n, why)
	}
	left := e.settle(ctx)
	unobserve()
	observer.Wait()
	e.logf("settled after %v", time.Since(healed).Round(100*time.Millisecond))
	for _, m := range e.crew.list(&e.crew.idle) {
		m.term()
	}
	in := e.input()
	in.Unsettled, in.Loaded = left, began.Add(e.cfg.Duration).UnixNano()
	res, err := check.Judge(ctx, in)
	if err != nil {
		return nil, err
	}
	rep := newReport(e.cfg, res)
	rep.Minutes = e.cfg.Duration.Minutes()
	rep.Faults, rep.Lateness = e.faults, &lateness
	return rep, nil
}

// prepare creates the sources and starts the first members.
func (e *execution) prepare(ctx context.Context) error {
	for _, s := range e.plan.services {
		for _, topic := range s.Topics {
			replicas := int16(brokers.Nodes)
			if e.cfg.Broker == BrokerOwn {
				replicas = -1 // the brokers' default
			}
			if _, err := e.adm.CreateTopic(ctx, int32(s.Partitions), replicas, nil, topic); err != nil {
				return fmt.Errorf("creating %s: %w", topic, err)
			}
		}
	}
	for i, s := range e.plan.services {
		for n := range s.Members {
			m, err := e.crew.start(i)
			if err != nil {
				return err
			}
			m.spared = n == 0 && i == e.plan.spared
		}
	}
	return nil
}

// work writes the load and injects the faults of the plan, until their time is over and all is
// healed.
func (e *execution) work(ctx context.Context, began time.Time, lateness *Lateness) error {
	working, stop := context.WithTimeout(ctx, e.cfg.Duration)
	defer stop()
	fail := e.cfg.Duration
	if fail > 2*closeTime {
		fail -= closeTime
	}
	failing, end := context.WithTimeout(e.healing, fail)
	defer end()
	e.failing = failing
	var wg sync.WaitGroup
	wg.Go(func() { e.load.run(working) })
	wg.Go(func() { lateness.run(working) })
	for _, s := range e.plan.steps {
		wg.Go(func() {
			select {
			case <-time.After(s.at - time.Since(began)):
				e.inject(s)
			case <-working.Done():
			}
		})
	}
	<-working.Done()
	e.heal()
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	flushing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return e.load.flush(flushing)
}

// input is what the checker gets of the run.
func (e *execution) input() check.Input {
	in := check.Input{Services: e.plan.services, Tiers: everyTier(), Settles: e.cfg.settles, Recovers: e.cfg.recovers, Opts: e.direct()}
	for _, m := range e.crew.list(&e.crew.all) {
		in.Members = append(in.Members, m.facts())
	}
	for _, m := range e.crew.list(&e.crew.died) {
		in.Died = append(in.Died, m.facts())
	}
	e.mu.Lock()
	in.Windows = slices.Clone(e.windows)
	e.mu.Unlock()
	e.load.mu.Lock()
	in.Acked, in.Lost, in.Older = e.load.acked, e.load.lost, e.load.older
	e.load.mu.Unlock()
	e.sampler.mu.Lock()
	in.Samples = e.sampler.samples
	e.sampler.mu.Unlock()
	return in
}

// closeTime is how long the load goes on after an outage, so that strained topics learn of its end:
// else what fails by its script is tried again for as long as an outage may last.
const closeTime = 20 * time.Second

// inject makes one fault.
func (e *execution) inject(s step) {
	from, kind := time.Now(), kindNamed(s.fault)
	kind.do(e, rand.New(rand.NewPCG(s.seed, 3)))
	to := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[kind.name]++
	e.windows = append(e.windows, trace.Window{Kind: kind.name, From: from.UnixNano(), To: to.UnixNano(), Infra: kind.infra, Parts: kind.parts, Down: kind.down})
	e.logf("%v %s, for %v", s.at, kind.name, to.Sub(from).Round(time.Millisecond))
}
