package consumer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/askqueue"
	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logline"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/opentxn"
	"github.com/sidingkafka/siding/consumer/internal/quota"
	"github.com/sidingkafka/siding/consumer/internal/session"
	"github.com/sidingkafka/siding/consumer/internal/tier"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
	"github.com/sidingkafka/siding/retrytopics"
)

// Consumer consumes source topics as a member of a group. It writes records that fail to retry and
// dead-letter topics. Its methods are safe for concurrent use.
type Consumer struct {
	cfg      Config
	log      *slog.Logger
	siblings map[string]retrytopics.Siblings
	policies map[string]*Policy
	hooks    hooks
	guards   guards
	groups   []string // the group, then its former names, the latest first
	host     string
	process  uint64 // a random number, by which a commit's evidence knows its own process

	running    atomic.Bool
	ready      chan struct{}
	isAssigned sync.Once

	// Set by Run.
	ctx           context.Context         // ends when the drain is over
	stop          context.Context         // ends when Run is to end
	refuse        context.CancelCauseFunc // ends stop when the group refuses the member
	hangUp        context.CancelFunc      // ends all requests of all clients
	endGroup      context.CancelFunc      // ends all requests of the group client
	values        context.Context         // the values of Run's context, without its end
	group         *kgo.Client
	retryCl       *kgo.Client
	copyClients   *forward.Clients
	admin         *kadm.Client
	cluster       *cluster.Cluster
	source        *pollGuard
	retryPoll     *retryPoll
	sourcePauser  fetchPauser
	retryPauser   fetchPauser
	tierEnv       *tier.Env
	clock         *clock.Clock
	workerPool    *workerPool
	knownSources  map[string]knownSource
	joined        chan struct{} // closed when group is set; kgo's callbacks wait for it
	classic       bool          // the group uses the classic protocol
	commitTimeout time.Duration
	wg            sync.WaitGroup // everything but workers
	workers       sync.WaitGroup
	metadataLimit atomic.Int64 // characters of a commit's metadata
	throttle      logthrottle.Throttle
	recordLog     recordLog
	joinLogged    atomic.Bool // until the membership is lost
	telemetry     *telemetry
	inflightBytes atomic.Int64
	laneCount     atomic.Int64
	clients       *clientFactory
	throttles     quota.Throttles // of all clients
	provisioner   *provisioner

	isolator  isolator
	asks      *askqueue.Queue[*lane] // a feed of theirs wants a commit before the next tick
	restUntil atomic.Int64           // commits may wait for a join until then, in Unix nanoseconds

	membership   *session.Membership
	subscription *session.Subscription

	mu     sync.Mutex
	lanes  map[topicPartition]*lane
	paused atomic.Pointer[map[string]bool]
	// The group's offsets that kgo has fetched, until it begins to read there.
	fetched map[topicPartition]cluster.Offset
	// By lane and tier: the offset to which a log was truncated, until the lane restarts from
	// there.
	truncations map[topicPartition]map[string]int64
	// Closed lanes whose handlers had not returned when they were closed.
	abandoned []*lane

	drainedTiers map[string][]drainedTier // by source
	// The last state logged of each retry topic that is not configured; only findDrainedTiers uses
	// it.
	unconfiguredLogged map[string]string
	newLanes           chan struct{} // capacity 1: lanes were assigned
	// Source topics that were recreated while they were consumed.
	recreated map[string]bool
	// The offsets that their lanes had committed in the deleted topics, until the new lanes have
	// positions.
	committedBefore map[topicPartition]int64
	topics          *topicmonitor.Monitor
}

// New checks the configuration and makes a consumer, without I/O. The error names every problem.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	siblings, err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("consumer: invalid configuration:\n%w", err)
	}
	cfg.Logger = slog.New(logline.New(cfg.Logger.Handler()))
	c := &Consumer{
		cfg:      cfg,
		log:      cfg.Logger.With("group", cfg.Group),
		siblings: siblings,
		policies: map[string]*Policy{},
		groups:   append([]string{cfg.Group}, cfg.FormerGroups...),
		ready:    make(chan struct{}),
		joined:   make(chan struct{}),
		source:   newPollGuard(),

		membership:         session.NewMembership(),
		subscription:       session.NewSubscription(),
		lanes:              map[topicPartition]*lane{},
		fetched:            map[topicPartition]cluster.Offset{},
		truncations:        map[topicPartition]map[string]int64{},
		drainedTiers:       map[string][]drainedTier{},
		unconfiguredLogged: map[string]string{},
		newLanes:           make(chan struct{}, 1),
		asks:               askqueue.New[*lane](),
		recreated:          map[string]bool{},
		committedBefore:    map[topicPartition]int64{},
	}
	c.provisioner = &provisioner{spec: cfg.Provision, siblings: siblings, log: c.log, throttle: &c.throttle}
	for c.process == 0 {
		c.process = rand.Uint64() >> 24
	}
	c.isolator.init(c)
	c.metadataLimit.Store(offsets.MetadataLimit)
	c.recordLog.init(c.log)
	c.clients = &clientFactory{cfg: &c.cfg, warnings: newClientWarnings(cfg.Logger), limits: &c.provisioner.limits, throttles: &c.throttles}
	c.hooks = newHooks(cfg.Hooks, c.log, &c.throttle, cfg.ErrorText)
	c.topics = topicmonitor.New(topicOwner{c})
	c.cfg.Topics, c.cfg.FormerGroups = slices.Clone(cfg.Topics), slices.Clone(cfg.FormerGroups)
	for _, t := range cfg.Topics {
		p := cfg.policyOf(t)
		c.policies[t] = &p
	}
	initGuards(c)
	c.tierEnv = c.newTierEnv()
	c.host, _ = os.Hostname() // only a hint for operators, so it may be empty
	c.paused.Store(&map[string]bool{})
	return c, nil
}

// Run provisions the siblings, joins the group and consumes until ctx ends. Then it drains: running
// handlers have DrainTimeout to finish, Run commits each partition up to its first record that is
// not finished, and the member leaves the group.
//
// All that takes DrainTimeout and 10 s at most, whatever brokers do: Run closes the connections to
// brokers that are silent, and what it could not commit runs again. Before it has joined the group,
// Run returns at once.
//
// Run returns nil after a clean drain, and a *StuckError if handlers ignored their cancellation. A
// second call returns ErrRunning. Any other error kept the consumer from starting: a source topic
// that does not exist, missing siblings that Provision may not create, refused credentials, or a
// missing permission on the group.
//
// At the start, Run waits for a broker that it cannot reach. After the first join it waits out
// every refusal, and Health reports it.
func (c *Consumer) Run(ctx context.Context) (err error) {
	if !c.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	began := time.Now()
	c.logStarting()
	defer func() {
		if err == nil {
			c.membership.End()
		}
		c.logEnd(began, err)
	}()
	ctx, c.refuse = context.WithCancelCause(ctx)
	defer c.refuse(nil)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	c.ctx, c.stop, c.values = life, ctx, valuesOf(ctx)
	c.clients.ctx, c.hangUp = context.WithCancel(context.Background())
	defer c.hangUp()
	c.clients.groupCtx, c.endGroup = context.WithCancel(c.clients.ctx)

	if c.telemetry, err = newTelemetry(c.values, &c.cfg, c.observe); err != nil {
		return fmt.Errorf("consumer: instruments: %w", err)
	}
	// Unregister fails only for a callback that was never registered.
	defer func() { _ = c.telemetry.observed.Unregister() }()
	if err := c.connect(); err != nil {
		return err
	}
	defer c.copyClients.Close()
	defer c.retryCl.Close()
	if err := c.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}

	polls, stopPolls := context.WithCancel(ctx)
	defer stopPolls()
	var polling sync.WaitGroup
	polling.Go(func() { c.pollSource(polls) })
	polling.Go(func() { c.retryPoll.loop(polls) })
	c.wg.Go(func() { c.commitLoop(life) })
	c.wg.Go(func() { c.isolator.run(polls) })
	heartbeat, _ := c.retryCl.OptValue(kgo.HeartbeatInterval).(time.Duration)
	c.wg.Go(func() { c.topics.Loop(polls, heartbeat) })
	c.wg.Go(func() { c.drainedTierLoop(polls) })
	c.wg.Go(func() { c.recordLog.summarize(polls) })
	c.wg.Go(func() { c.logJoining(polls) })
	c.wg.Go(func() { c.logBlocked(polls) })
	c.wg.Go(func() {
		opentxn.Asker{Cluster: c.cluster, Admin: c.admin, Log: c.log}.Run(polls, func() []opentxn.Partition { return standing(c.lanesNow()) })
	})
	c.wg.Go(func() { c.guardLoop(life) })
	if len(c.hooks.laneState) > 0 {
		c.wg.Go(func() { c.pollLaneStates(life) })
	}
	c.wg.Go(func() { c.tierEnv.Budget.Run(life) })

	<-ctx.Done()
	return c.shutDown(ctx, end, &polling)
}

// connect makes the clients and the parts that use them, but not the group client. A new group
// client begins to join at once, so prepare makes it after the siblings exist. Making the other
// clients opens no connection.
func (c *Consumer) connect() (err error) {
	if c.retryCl, err = c.clients.retryClient(); err != nil {
		return fmt.Errorf("consumer: retry client: %w", err)
	}
	c.clock = clock.New(&c.wg, c.ctx.Done(), c.watch)
	c.copyClients = forward.NewClients(c.ctx, c.clock, c.clients.producerClient, c.clients.singleClient, c.clients.tightClient)
	if _, err = c.copyClients.Client(); err != nil {
		c.retryCl.Close()
		return fmt.Errorf("consumer: producer: %w", err)
	}
	c.admin, c.cluster = kadm.NewClient(c.retryCl), cluster.New(c.retryCl)
	c.provisioner.admin = c.admin
	c.classic = c.retryCl.OptValue(kgo.ServerSideBalancer) != true
	c.commitTimeout = commitTimeFor(c.retryCl, c.cfg.DrainTimeout)
	rebalance, _ := c.retryCl.OptValue(kgo.RebalanceTimeout).(time.Duration)
	c.membership.Begin(rebalance + joinsLate)
	c.retryPoll = newRetryPoll(c, c.retryCl)
	c.retryPauser.client = c.retryCl
	// Evicted records are not fetched through the retry client, whose fetch connections are busy
	// with long polls.
	c.tierEnv.Fetch = tier.NewFetcher(c.retryCl, c.copyClients.Client, c.cluster).Fetch
	c.workerPool = &workerPool{limit: c.cfg.Concurrency, wg: &c.workers, run: runUnit, clock: c.clock}
	return nil
}

// prepare waits for the broker, provisions the siblings, and makes the group client, which joins.
// If ctx ends before the join, prepare ends at once: no broker has to learn of it.
func (c *Consumer) prepare(ctx context.Context) error {
	stay := context.AfterFunc(ctx, c.hangUp)
	defer stay()
	if err := c.retryUntilFinal(ctx, func(err error) bool { return !refusesUs(err) }, "connecting to Kafka", func() error {
		return connecting(c.retryCl.Ping(ctx), c.retryCl)
	}); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"provisioning siblings", func() error { return c.provisioner.ensure(ctx, c.cfg.Topics) }},
		{"finding drained retry topics", func() error { return c.findDrainedTiers(ctx) }},
		{"reading the group's offsets", func() (err error) {
			if c.cfg.Start.list != nil { // StartEarliest does not depend on them
				c.knownSources, err = loadKnownSources(ctx, c.cluster, c.groups, c.cfg.Topics)
			}
			return err
		}},
	} {
		if err := c.retryUntilFinal(ctx, transient, step.what, step.do); err != nil {
			return err
		}
	}
	c.warnOfFormerGroups(ctx)
	if !stay() {
		return ctx.Err()
	}
	group, err := c.clients.groupClient(kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(c.lost), kgo.OnOffsetsFetched(c.offsetsFetched), kgo.AdjustFetchOffsetsFn(c.adjustFetchOffsets))
	if err != nil {
		return fmt.Errorf("consumer: group client: %w", err)
	}
	c.group = group
	c.sourcePauser.client = group
	close(c.joined)
	return nil
}

// retryUntilFinal repeats a step of the start until it succeeds or fails permanently. passes
// reports the errors that pass by themselves. A broker learns of a new topic a moment after the
// controller created it. Another error is therefore permanent only when it has persisted for some
// 0.7 s.
func (c *Consumer) retryUntilFinal(ctx context.Context, passes func(error) bool, what string, step func() error) error {
	var final error
	looks := 0
	ok := c.retry(ctx, what, func() error {
		err := step()
		if err != nil {
			c.membership.NoteJoinError(fmt.Errorf("%s: %w", what, err))
		}
		if err != nil && !passes(err) {
			if looks++; looks > 3 {
				final = err
				return nil
			}
		}
		return err
	})
	switch {
	case final != nil:
		return fmt.Errorf("consumer: %w", final)
	case !ok:
		return ctx.Err()
	}
	return nil
}

// Ready is closed when the lanes of the first assignment run, or when the member joined and was
// assigned no partition. It waits at most a minute for a lane that cannot start, for example
// because a permission is missing. Health then is not OK, and says why. Ready stays closed,
// whatever is assigned later.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

// readyPoll is the interval at which awaitReady checks the lanes of the first assignment.
const readyPoll = 50 * time.Millisecond

// awaitReady closes Ready as soon as hasStarted allows it.
func (c *Consumer) awaitReady() {
	for !c.hasStarted(time.Now()) {
		if !backoff.Wait(c.ctx, readyPoll) {
			return
		}
	}
	close(c.ready)
}

// hasStarted reports whether every lane has started, or has been starting for longer than
// startsWithin. Without lanes it reports whether the member has joined: a member that lost its
// lanes and joins again may still be assigned some.
func (c *Consumer) hasStarted(now time.Time) bool {
	lanes := c.lanesNow()
	if len(lanes) == 0 {
		h, _ := c.membership.Health(now)
		return h.Joined
	}
	return !slices.ContainsFunc(lanes, func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.state == laneStarting && now.Sub(l.since) <= startsWithin
	})
}

// Pause stops running records of the topics, from the source and from its retry topics, until
// Resume. Running handlers finish. Partitions stay assigned, and the pause outlasts rebalances.
// Pause ignores topics that are not consumed.
func (c *Consumer) Pause(topics ...string) { c.setPaused(true, topics) }

// Resume ends the pause of the topics.
func (c *Consumer) Resume(topics ...string) { c.setPaused(false, topics) }

func (c *Consumer) setPaused(on bool, topics []string) {
	c.mu.Lock()
	paused := maps.Clone(*c.paused.Load())
	for _, t := range topics {
		if on && c.policies[t] != nil {
			paused[t] = true
		} else {
			delete(paused, t)
		}
	}
	c.paused.Store(&paused)
	c.mu.Unlock()
	for _, l := range c.lanesNow() {
		l.wake()
	}
}

func (c *Consumer) isPaused(topic string) bool { return (*c.paused.Load())[topic] }

// warnAfter is the time that a step may fail before that is a warning. A topic that was created a
// moment ago has no leader yet, and the first group of a cluster no coordinator.
const warnAfter = 5 * time.Second

// retry repeats do, with backoff, until it succeeds or ctx ends.
func (c *Consumer) retry(ctx context.Context, what string, do func() error) bool {
	began := time.Now()
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		wait := backoff.Of(n, 100*time.Millisecond, 10*time.Second)
		about := []any{"what", what, "wait", wait, "error", err}
		if time.Since(began) < warnAfter {
			c.log.Debug("siding: trying again", about...)
		} else {
			c.log.Warn("siding: trying again", about...)
		}
		if !backoff.Wait(ctx, wait) {
			return false
		}
	}
}
