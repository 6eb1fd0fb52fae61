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

// execution is a run while it goes on.
type execution struct {
	cfg     Config
	plan    plan
	brokers brokers.Cluster
	crew    *crew
	cl      *kgo.Client
	adm     *kadm.Client
	load    *load
	sampler *sampler
	mark    string // in records
	samples *os.File
	healing context.Context // ends when faults have to end
	heal    context.CancelFunc
	failing context.Context // ends when outages have to end

	nodes   sync.Mutex // held while a broker is away
	growing sync.Mutex // held while a topic gets partitions
	outages sync.Mutex // held while a service's runs fail
	// Held for writing while all brokers end, and for reading while transactions of redrive may be
	// open. The embedded broker aborts these at its next start without a marker in the log, so that
	// a reader never comes to its end.
	transactions sync.RWMutex

	mu      sync.Mutex
	faults  map[string]int
	windows []trace.Window
}

func newExecution(cfg Config) (*execution, error) {
	e := &execution{cfg: cfg, mark: leak.New().Mark(""), faults: map[string]int{}}
	e.healing, e.heal = context.WithCancel(context.Background())
	var err error
	switch cfg.Broker {
	case BrokerKafka:
		e.brokers, err = brokers.StartKafka(context.Background())
	case BrokerOwn:
		e.brokers = &brokers.Own{Opts: cfg.Kafka}
	default:
		e.brokers, err = brokers.StartEmbedded(filepath.Join(cfg.Dir, "broker"), filepath.Join(cfg.Dir, "broker.log"), cfg.defect)
	}
	if err != nil {
		return nil, err
	}
	e.plan = newPlan(cfg, e.brokers.Can())
	e.crew = &crew{cfg: cfg, services: e.plan.services, mark: e.mark, seeds: e.brokers.Seeds, logf: e.logf, tiers: map[int][]time.Duration{}}
	if e.cl, err = kgo.NewClient(e.direct()...); err != nil {
		return nil, errors.Join(err, e.brokers.Close())
	}
	e.adm = kadm.NewClient(e.cl)
	e.load = &load{mark: e.mark, poisons: e.plan.poisons, opts: e.direct(), cfg: cfg, services: e.plan.services, rnd: rand.New(rand.NewPCG(cfg.Seed, 2)), acked: map[int64]trace.Written{}, lost: map[int64]bool{}, refused: map[string]int{}}
	if err := e.load.connect(); err != nil {
		return nil, errors.Join(err, e.brokers.Close())
	}
	if e.samples, err = os.Create(filepath.Join(cfg.Dir, "samples")); err != nil {
		return nil, errors.Join(err, e.brokers.Close())
	}
	e.sampler = &sampler{file: e.samples, adm: e.adm, services: e.plan.services, tiers: everyTier()}
	return e, nil
}

// direct are options of clients that no fault of the network reaches.
func (e *execution) direct() []kgo.Opt {
	return append(e.brokers.Options(true), kgo.MetadataMinAge(250*time.Millisecond))
}

func (e *execution) logf(format string, args ...any) {
	fmt.Fprintf(e.cfg.Log, "chaos: "+format+"\n", args...)
}

func (e *execution) close() {
	e.heal()
	e.crew.close()
	e.samples.Close()
	e.cl.Close()
	e.load.cl.Close()
	if err := e.brokers.Close(); err != nil {
		e.logf("ending the brokers: %v", err)
	}
}

func (e *execution) run(ctx context.Context) (*Report, error) {
	began := time.Now()
	e.logf("seed %d, %v, broker %s\n%s", e.cfg.Seed, e.cfg.Duration, e.cfg.Broker, e.plan)
	for _, s := range e.plan.services {
		for _, topic := range s.Topics {
			replicas := int16(brokers.Nodes)
			if e.cfg.Broker == BrokerOwn {
				replicas = -1 // the brokers' default
			}
			if _, err := e.adm.CreateTopic(ctx, int32(s.Partitions), replicas, nil, topic); err != nil {
				return nil, fmt.Errorf("creating %s: %w", topic, err)
			}
		}
	}
	for i, s := range e.plan.services {
		for n := range s.Members {
			m, err := e.crew.start(i)
			if err != nil {
				return nil, err
			}
			m.spared = n == 0 && i == e.plan.spared
		}
	}
	working, stop := context.WithTimeout(ctx, e.cfg.Duration)
	defer stop()
	fail := e.cfg.Duration
	if fail > 2*closeTime {
		fail -= closeTime
	}
	failing, end := context.WithTimeout(e.healing, fail)
	defer end()
	e.failing = failing
	observing, unobserve := context.WithCancel(ctx)
	defer unobserve()
	var wg, observer sync.WaitGroup
	wg.Go(func() { e.load.run(working) })
	observer.Go(func() { e.sampler.run(observing) })
	var lateness Lateness
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
		return nil, err
	}
	flushing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := e.load.flush(flushing); err != nil {
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
	for _, m := range e.crew.members() {
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

// input is what the run tells the checker.
func (e *execution) input() check.Input {
	in := check.Input{Services: e.plan.services, Tiers: everyTier(), Recovers: e.cfg.recovers, Opts: e.direct()}
	for _, m := range e.crew.everyone() {
		in.Members = append(in.Members, m.told())
	}
	for _, m := range e.crew.dead() {
		in.Died = append(in.Died, m.told())
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
	from := time.Now()
	s.kind.do(e, rand.New(rand.NewPCG(s.seed, 3)))
	to := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[s.kind.name]++
	e.windows = append(e.windows, trace.Window{Kind: s.kind.name, From: from.UnixNano(), To: to.UnixNano(), Infra: s.kind.infra, Parts: s.kind.parts, Down: s.kind.down})
	e.logf("%v %s, for %v", s.at, s.kind.name, to.Sub(from).Round(time.Millisecond))
}

// rest waits for a random time, or until the run is being healed.
func (e *execution) rest(rnd *rand.Rand, least, most time.Duration) {
	rest(e.healing, rnd, least, most)
}

func rest(ctx context.Context, rnd *rand.Rand, least, most time.Duration) {
	select {
	case <-time.After(least + time.Duration(rnd.Int64N(int64(most-least)))):
	case <-ctx.Done():
	}
}

// try logs an error of a fault that could not be injected.
func (e *execution) try(err error) {
	if err != nil && e.healing.Err() == nil {
		e.logf("a fault could not be injected: %v", err)
	}
}

// whileAnswering makes the brokers answer with a fault for a random time.
func (e *execution) whileAnswering(f brokers.Fault, rnd *rand.Rand, least, most time.Duration) {
	heal, err := e.brokers.Answer(f)
	e.whileFaulty(heal, err, rnd, least, most)
}

// healsWithin is how long a fault is healed again and again, if the brokers do not answer.
const healsWithin = 2 * time.Minute

// whileFaulty waits for a random time with a fault of the brokers, and heals it: also one that they
// answered with an error, since they may have done as they were told.
func (e *execution) whileFaulty(heal func() error, err error, rnd *rand.Rand, least, most time.Duration) {
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	if e.try(err); err == nil {
		e.rest(rnd, least, most)
	}
	for end := time.Now().Add(healsWithin); ; <-time.After(time.Second) {
		switch err = heal(); {
		case err == nil:
			return
		case time.Now().After(end):
			e.logf("a fault could not be healed: %v", err)
			return
		}
	}
}
