package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/leak"
)

// Run makes one run and returns what it found. The error says why it could not be made; a broken
// promise is none, see [Report.Broken].
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	own := cfg.Dir == ""
	if own {
		dir, err := os.MkdirTemp("", "siding-chaos-")
		if err != nil {
			return nil, err
		}
		cfg.Dir = dir
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	e, err := newExecution(cfg)
	if err != nil {
		return nil, err
	}
	rep, err := e.run(ctx)
	e.close() // before the folder is removed: the embedded broker writes as it ends
	if err != nil {
		return nil, fmt.Errorf("chaos: seed %d: %w (journals and logs are in %s)", cfg.Seed, err, cfg.Dir)
	}
	rep.Dir = cfg.Dir
	if cfg.Results != "" {
		if err := rep.append(cfg.Results); err != nil {
			return nil, err
		}
	}
	if own && len(rep.Broken) == 0 {
		rep.Dir = ""
		return rep, os.RemoveAll(cfg.Dir)
	}
	return rep, nil
}

// execution is a run while it goes on.
type execution struct {
	cfg     Config
	plan    plan
	brokers brokers
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
	windows []window
}

// window is the time of a fault, and what the fault does.
type window struct {
	kind     string
	from, to int64
	infra    bool // brokers or networks fail: any member may lose its membership
	parts    bool // it may part a member from its group
	down     bool // what handlers call is down, at least in part
}

func newExecution(cfg Config) (*execution, error) {
	e := &execution{cfg: cfg, mark: leak.New().Mark(""), faults: map[string]int{}}
	e.healing, e.heal = context.WithCancel(context.Background())
	var err error
	switch cfg.Broker {
	case BrokerKafka:
		e.brokers, err = startKafka(context.Background())
	case BrokerOwn:
		e.brokers = &own{opts: cfg.Kafka}
	default:
		e.brokers, err = startEmbedded(filepath.Join(cfg.Dir, "broker"), filepath.Join(cfg.Dir, "broker.log"), cfg.defect)
	}
	if err != nil {
		return nil, err
	}
	e.plan = newPlan(cfg, e.brokers.can())
	e.crew = &crew{cfg: cfg, services: e.plan.services, mark: e.mark, seeds: e.brokers.seeds, logf: e.logf, tiers: map[int][]time.Duration{}}
	if e.cl, err = kgo.NewClient(e.direct()...); err != nil {
		return nil, errors.Join(err, e.brokers.close())
	}
	e.adm = kadm.NewClient(e.cl)
	e.load = &load{mark: e.mark, poisons: e.plan.poisons, opts: e.direct(), cfg: cfg, services: e.plan.services, rnd: rand.New(rand.NewPCG(cfg.Seed, 2)), acked: map[int64]written{}, lost: map[int64]bool{}, refused: map[string]int{}}
	if err := e.load.connect(); err != nil {
		return nil, errors.Join(err, e.brokers.close())
	}
	if e.samples, err = os.Create(filepath.Join(cfg.Dir, "samples")); err != nil {
		return nil, errors.Join(err, e.brokers.close())
	}
	e.sampler = &sampler{file: e.samples, adm: e.adm, services: e.plan.services, tiers: everyTier}
	return e, nil
}

// direct are options of clients that no fault of the network reaches.
func (e *execution) direct() []kgo.Opt {
	return append(e.brokers.options(true), kgo.MetadataMinAge(250*time.Millisecond))
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
	if err := e.brokers.close(); err != nil {
		e.logf("ending the brokers: %v", err)
	}
}

func (e *execution) run(ctx context.Context) (*Report, error) {
	began := time.Now()
	e.logf("seed %d, %v, broker %s\n%s", e.cfg.Seed, e.cfg.Duration, e.cfg.Broker, e.plan)
	for _, s := range e.plan.services {
		for _, topic := range s.Topics {
			replicas := int16(brokerNodes)
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
	ev, err := e.evidence(ctx)
	if err != nil {
		return nil, err
	}
	ev.unsettled = left
	ev.loaded = began.Add(e.cfg.Duration).UnixNano()
	rep := ev.report(e.cfg)
	rep.Minutes = e.cfg.Duration.Minutes()
	rep.Faults, rep.Lateness = e.faults, &lateness
	return rep, nil
}

// closeTime is how long the load goes on after an outage, so that strained topics learn of its end:
// else what fails by its script is tried again for as long as an outage may last.
const closeTime = 20 * time.Second

// recoverTime is how long a topic may need after an outage to be back at its speed.
const recoverTime = 30 * time.Second

// settleTime is how long a floor may stand still in a healthy cluster, besides the longest wait in
// tiers.
const settleTime = 30 * time.Second

// settle waits until the groups have committed all topics to their ends. It returns the partitions
// whose floors stood still instead.
func (e *execution) settle(ctx context.Context) map[tp]string {
	longest := time.Duration(0)
	for _, s := range e.plan.services {
		delays := everyTier(s)
		longest = max(longest, delays[len(delays)-1]*11/10)
	}
	floors, moved := map[tp]int64{}, map[tp]time.Time{}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	deaths := 0
	recovered := e.recovered()
	patience := e.cfg.settles + longest
	if e.faults["stuck"] > 0 { // such a record may begin at any time, and hold up those of its key
		patience += stuckFor
	}
	// A partition that is read from its start again has much to do, and its retries wait for that.
	// After a death its group has to find out, and records that hang may run one by one.
	limit := func(at tp) time.Duration {
		if deaths > 0 || e.load.hasLost(at.partition) {
			return 4 * patience
		}
		return patience
	}
	for began := time.Now(); ; {
		left, stuck := 0, map[tp]string{}
		if n := len(e.crew.dead()); n > deaths { // records kill
			deaths = n
			clear(moved)
			clear(floors)
		}
		look := func(at tp, floor int64, why string) {
			left++
			if before, ok := floors[at]; !ok || before != floor {
				floors[at], moved[at] = floor, time.Now()
			}
			if time.Since(later(moved[at], recovered)) > limit(at) {
				stuck[at] = why
			}
		}
		for _, s := range e.plan.services {
			within, cancel := context.WithTimeout(ctx, 5*time.Second)
			got, err := e.sampler.take(within, s)
			cancel()
			if err != nil {
				look(tp{s.Group, -1}, 0, err.Error())
				continue
			}
			for _, topic := range s.Topics {
				siblings := s.siblings(topic, e.sampler.tiers(s))
				for at, end := range got.ends {
					if at.topic != siblings.DLQ && at.topic != siblings.Ledger && end > 0 && got.committed[at] < end {
						look(at, got.committed[at], fmt.Sprintf("committed %d of %d", got.committed[at], end))
					}
				}
			}
		}
		if len(stuck) > 0 {
			e.describe(ctx)
		}
		if left == 0 || ctx.Err() != nil || len(stuck) > 0 || time.Since(began) > 15*time.Minute {
			return stuck
		}
		<-tick.C
	}
}

// recovered is when the topics have to be back at their speed after the last outage.
func (e *execution) recovered() (at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.windows {
		if w.down {
			at = later(at, time.Unix(0, w.to).Add(e.cfg.recovers))
		}
	}
	return at
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// describe writes what the coordinators know of the groups to a file, for people who look for the
// cause of a find.
func (e *execution) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text := ""
	for _, s := range e.plan.services {
		if s.NextGen {
			groups, err := e.adm.DescribeConsumerGroups(ctx, s.Group)
			text += fmt.Sprintf("%+v %v\n", groups, err)
			continue
		}
		groups, err := e.adm.DescribeGroups(ctx, s.Group)
		text += fmt.Sprintf("%+v %v\n", groups, err)
	}
	e.try(os.WriteFile(filepath.Join(e.cfg.Dir, "groups"), []byte(text), 0o600))
}

// inject makes one fault.
func (e *execution) inject(s step) {
	from := time.Now()
	s.kind.do(e, rand.New(rand.NewPCG(s.seed, 3)))
	to := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[s.kind.name]++
	e.windows = append(e.windows, window{s.kind.name, from.UnixNano(), to.UnixNano(), s.kind.infra, s.kind.parts, s.kind.down})
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
func (e *execution) whileAnswering(f fault, rnd *rand.Rand, least, most time.Duration) {
	heal, err := e.brokers.answer(f)
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
