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
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/leak"
	"github.com/sidingkafka/siding/redrive"
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
	cl      *kgo.Client
	adm     *kadm.Client
	load    *load
	sampler *sampler
	mark    string // in records
	samples *os.File
	healing context.Context // ends when faults have to end
	heal    context.CancelFunc

	nodes   sync.Mutex // held while a broker is away
	rolling sync.Mutex // held while a configuration changes
	outages sync.Mutex // held while a service's runs fail
	// Held for writing while all brokers end, and for reading while transactions of redrive may be
	// open. The embedded broker aborts these at its next start without a marker in the log, so that
	// a reader never comes to its end.
	transactions sync.RWMutex

	mu      sync.Mutex
	closing atomic.Bool
	died    []*member               // by themselves
	idle    []*member               // alive, and nobody's victim
	tiers   map[int][]time.Duration // of services whose configuration has changed
	all     []*member
	faults  map[string]int
	windows []window
}

// window is the time of a fault.
type window struct {
	kind     string
	from, to int64
}

func newExecution(cfg Config) (*execution, error) {
	e := &execution{cfg: cfg, mark: leak.New().Mark(""), faults: map[string]int{}, tiers: map[int][]time.Duration{}}
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
	e.closing.Store(true)
	e.mu.Lock()
	all := e.all
	e.mu.Unlock()
	for _, m := range all {
		if m.proc.alive() {
			m.proc.kill()
		}
	}
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
			m, err := e.start(i)
			if err != nil {
				return nil, err
			}
			m.spared = n == 0 && i == e.plan.spared
		}
	}
	working, stop := context.WithTimeout(ctx, e.cfg.Duration)
	defer stop()
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
	for _, m := range e.members() {
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
	patience := settleTime + longest
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
		e.mu.Lock()
		if n := len(e.died); n > deaths { // records kill
			deaths = n
			clear(moved)
			clear(floors)
		}
		e.mu.Unlock()
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
		if w.kind == "outage" {
			at = later(at, time.Unix(0, w.to).Add(recoverTime))
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
	e.windows = append(e.windows, window{s.kind.name, from.UnixNano(), to.UnixNano()})
	e.logf("%v %s, for %v", s.at, s.kind.name, to.Sub(from).Round(time.Millisecond))
}

// rest waits for a random time, or until the run is being healed.
func (e *execution) rest(rnd *rand.Rand, least, most time.Duration) {
	select {
	case <-time.After(least + time.Duration(rnd.Int64N(int64(most-least)))):
	case <-e.healing.Done():
	}
}

// start starts a member of a service.
func (e *execution) start(service int) (*member, error) {
	e.mu.Lock()
	name := fmt.Sprintf("s%d-m%02d", service, len(e.all))
	m := &member{service: service, job: memberJob{
		Name: name, Service: e.plan.services[service], Seeds: e.brokers.seeds(), Dir: e.cfg.Dir, Defect: e.cfg.defect,
		Mark: e.mark, Traced: len(e.all)%2 == 0,
	}}
	if e.cfg.Broker == BrokerKafka {
		m.job.User = memberUser
	}
	// what was evicted is read again past the hook that skews
	if m.job.Service.MaxParkedBytes == 0 {
		m.job.Skew = skews[len(e.all)%len(skews)]
	}
	if tiers := e.tiers[service]; tiers != nil {
		m.job.Service.Policy.Tiers = tiers
	}
	e.all = append(e.all, m)
	e.mu.Unlock()
	m.began = time.Now().UnixNano()
	var err error
	if m.proc, err = startProcess(roleMember, m.job, m.job.log()); err != nil {
		return nil, err
	}
	go e.supervise(m)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, m)
	return m, nil
}

// skews are by how much the clocks of members' hosts are fast, in the order of their starts.
var skews = []time.Duration{0, 300 * time.Millisecond, 0, -300 * time.Millisecond, 0}

// supervise replaces a member that ends by itself, as whatever runs a service does.
func (e *execution) supervise(m *member) {
	<-m.proc.exited
	if m.asked.Load() || e.closing.Load() {
		return
	}
	e.logf("%s ended by itself: %v; see %s", m.job.Name, m.proc.err, m.job.log())
	e.mu.Lock()
	e.died = append(e.died, m)
	m.killed, m.ended = true, time.Now().UnixNano()
	idle := len(e.idle)
	e.idle = slices.DeleteFunc(e.idle, func(other *member) bool { return other == m })
	replaced := len(e.idle) < idle // its fault replaces a victim
	e.mu.Unlock()
	if replaced {
		<-time.After(time.Second)
		e.replace(m)
	}
}

// victim takes a member that is alive, not spared, and that no other fault has. It waits for one.
func (e *execution) victim(rnd *rand.Rand) *member {
	for {
		e.mu.Lock()
		var able []*member
		for _, m := range e.idle {
			if !m.spared {
				able = append(able, m)
			}
		}
		if len(able) > 0 {
			m := able[rnd.IntN(len(able))]
			e.idle = slices.DeleteFunc(e.idle, func(other *member) bool { return other == m })
			e.mu.Unlock()
			return m
		}
		e.mu.Unlock()
		<-time.After(100 * time.Millisecond)
	}
}

// release makes a victim that lives on available again.
func (e *execution) release(m *member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = append(e.idle, m)
}

// replace starts a member in the place of one that ended.
func (e *execution) replace(m *member) {
	if _, err := e.start(m.service); err != nil {
		e.logf("a member cannot be started: %v", err)
	}
}

// join starts a further member, as its caller's victim.
func (e *execution) join(service int) *member {
	m, err := e.start(service)
	if err != nil {
		e.logf("a member cannot be started: %v", err)
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, other := range e.idle {
		if other == m {
			e.idle = append(e.idle[:i], e.idle[i+1:]...)
			break
		}
	}
	return m
}

// take takes all members of a service that are not spared and that nobody has as a victim.
func (e *execution) take(service int) (taken []*member) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle = slices.DeleteFunc(e.idle, func(m *member) bool {
		if m.service != service || m.spared {
			return false
		}
		taken = append(taken, m)
		return true
	})
	return taken
}

// configure gives the next members of a service other tiers.
func (e *execution) configure(service int, tiers []time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tiers[service] = tiers
}

// everyTier has all delays that a service's tiers may ever have.
func everyTier(service) (all []time.Duration) {
	for _, tiers := range tierSets {
		all = append(all, tiers...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// grow adds partitions to a topic, and lets the load know.
func (e *execution) grow(s service, topic string, by int) {
	e.rolling.Lock()
	defer e.rolling.Unlock()
	n := s.Partitions
	if grown, ok := e.load.grown.Load(topic); ok {
		n = grown.(int)
	}
	if n += by; n > s.Partitions+6 {
		return
	}
	resp, err := e.adm.UpdatePartitions(e.healing, n, topic)
	if err == nil {
		err = resp.Error()
	}
	if e.try(err); err != nil {
		return
	}
	e.cl.ForceMetadataRefresh()
	select {
	case <-time.After(2 * time.Second): // the client knows the partitions by then
		e.load.grown.Store(topic, n)
	case <-e.healing.Done():
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

// transactionLives is the timeout of redrive's transactions, and a little more.
const transactionLives = 12 * time.Second

// redrive redrives the letters of records that have been repaired.
func (e *execution) redrive(s service, source string) {
	e.transactions.RLock()
	defer e.transactions.RUnlock()
	ctx, cancel := context.WithTimeout(e.healing, 20*time.Second)
	defer cancel()
	r, err := redrive.New(redrive.Config{Kafka: e.direct()})
	if err != nil {
		e.try(err)
		return
	}
	o := redrive.RunOptions{By: "chaos", Pace: redrive.Pace{
		Rate: 500, Ramp: -1, Window: time.Second, Canary: -1, Tolerate: 1 << 30, TolerateShare: 1,
	}}
	name := s.siblings(source, nil).DLQ
	p, err := r.Plan(ctx, redrive.Selection{Topic: name, Filter: dlq.Filter{Classes: []string{classRepaired}}})
	if err == nil {
		_, err = r.Run(ctx, p, o)
	}
	var refused *redrive.RefusedError
	if errors.As(err, &refused) {
		if refused.Reason != redrive.RefusedUnfinished {
			return // there are no letters
		}
		_, err = r.Resume(ctx, name, refused.Run.ID, o)
	}
	if e.try(err); err != nil {
		select { // its transactions may be open
		case <-time.After(transactionLives):
		case <-e.healing.Done():
		}
	}
}

// members are those that nobody has as a victim.
func (e *execution) members() []*member {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*member(nil), e.idle...)
}
