package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/backoff"
	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
	"github.com/sidingkafka/siding/consumer/internal/session"
	"github.com/sidingkafka/siding/consumer/internal/tier"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
	"github.com/sidingkafka/siding/retrytopics"
)

// Consumer consumes source topics as a member of a group, and moves aside what fails. Its methods
// are safe for concurrent use.
type Consumer struct {
	cfg      Config
	log      *slog.Logger
	siblings map[string]retrytopics.Siblings
	policies map[string]*Policy
	hooks    hooks
	groups   groupNames
	host     string

	running    atomic.Bool
	ready      chan struct{}
	isReady    sync.Once
	isAssigned sync.Once

	// Set by Run.
	ctx           context.Context         // ends when the drain is over
	stop          context.Context         // ends when Run is told to end
	refuse        context.CancelCauseFunc // tells it to, since the member may not join
	values        context.Context         // the values of the context that Run was given
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
	fetcher       *tier.Fetcher
	clock         *clock.Clock
	workerPool    *workerPool
	knownSources  map[string]knownSource
	joined        chan struct{} // closed when group is set, which kgo's callbacks wait for
	classic       bool          // the group speaks the classic protocol
	commitTimeout time.Duration
	wg            sync.WaitGroup // everything but workers
	workers       sync.WaitGroup
	throttle      logthrottle.Throttle
	telemetry     *telemetry
	inflightBytes atomic.Int64
	laneCount     atomic.Int64
	clients       *clientFactory
	provisioner   *provisioner

	membership   *session.Membership
	subscription *session.Subscription

	mu     sync.Mutex
	lanes  map[topicPartition]*lane
	paused atomic.Pointer[map[string]bool]
	// closed by the next Resume, and replaced; mu guards it
	resumed chan struct{}
	// by lane and tier: where a log was truncated, until the lane starts anew from there
	truncations map[topicPartition]map[string]int64
	// positions out of range that are looked at again soon
	repolled map[topicPartition]bool
	// gone, with handlers that had not returned by then
	abandoned []*lane

	drainedTiers map[string][]drainedTier // by source: retry topics that are drained
	// of retry topics that are not configured, what was said last; inherit's
	unconfiguredLogged map[string]string
	newLanes           chan struct{} // has room for one: lanes were assigned
	// source topics that were made anew while they were consumed
	recreated map[string]bool
	// what their lanes had committed in the old ones, until they are placed in the new ones
	committedBefore map[topicPartition]int64
	topics          *topicmonitor.Monitor
}

// New checks the configuration and makes a consumer. It does no I/O. The error names every problem.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	siblings, err := cfg.validate()
	if err != nil {
		return nil, fmt.Errorf("consumer: invalid configuration:\n%w", err)
	}
	c := &Consumer{
		cfg:      cfg,
		log:      cfg.Logger.With("group", cfg.Group),
		siblings: siblings,
		policies: map[string]*Policy{},
		groups:   append(groupNames{cfg.Group}, cfg.FormerGroups...),
		ready:    make(chan struct{}),
		joined:   make(chan struct{}),
		source:   newPollGuard(),

		membership:         session.NewMembership(),
		subscription:       session.NewSubscription(),
		lanes:              map[topicPartition]*lane{},
		repolled:           map[topicPartition]bool{},
		truncations:        map[topicPartition]map[string]int64{},
		drainedTiers:       map[string][]drainedTier{},
		unconfiguredLogged: map[string]string{},
		newLanes:           make(chan struct{}, 1),
		recreated:          map[string]bool{},
		committedBefore:    map[topicPartition]int64{},
	}
	c.provisioner = &provisioner{spec: cfg.Provision, siblings: siblings, log: c.log, throttle: &c.throttle, ids: map[string]kadm.TopicID{}}
	c.clients = &clientFactory{cfg: &c.cfg, throttle: &c.throttle, limits: &c.provisioner.limits}
	c.hooks = newHooks(cfg.Hooks, c.log, &c.throttle)
	c.topics = topicmonitor.New(topicOwner{c})
	c.cfg.Topics, c.cfg.FormerGroups = slices.Clone(cfg.Topics), slices.Clone(cfg.FormerGroups)
	for _, t := range cfg.Topics {
		p := cfg.policyOf(t)
		c.policies[t] = &p
	}
	c.tierEnv = c.newTierEnv()
	c.host, _ = os.Hostname() // unknown is fine: it is a hint for people
	c.paused.Store(&map[string]bool{})
	c.resumed = make(chan struct{})
	return c, nil
}

// Run provisions the siblings, joins the group and consumes until ctx ends; then it drains: running
// handlers have DrainTimeout to finish, each partition is committed up to its first record that is
// not finished, and the member leaves the group. It returns nil after a clean drain, a *StuckError
// where handlers ignored their cancelling, and otherwise an error that kept it from starting.
//
// A broker that cannot be reached at the start is waited for. A source topic that does not exist is
// an error, and so are siblings that are missing and may not be created, credentials that are
// refused, and a right on the group that is missing. What is refused after the first join is waited
// for, and Health says so.
func (c *Consumer) Run(ctx context.Context) (err error) {
	if !c.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer func() {
		if err == nil {
			c.membership.End()
		}
	}()
	ctx, c.refuse = context.WithCancelCause(ctx)
	defer c.refuse(nil)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	c.ctx, c.stop, c.values = life, ctx, valuesOf(ctx)

	if c.telemetry, err = newTelemetry(c.values, &c.cfg, c.observe); err != nil {
		return fmt.Errorf("consumer: instruments: %w", err)
	}
	// its error says that it was never registered
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
	c.wg.Go(func() { c.topics.Loop(polls) })
	c.wg.Go(func() { c.drainedTierLoop(polls) })
	if len(c.hooks.laneState) > 0 {
		c.wg.Go(func() { c.pollLaneStates(life) })
	}
	c.wg.Go(func() { c.tierEnv.Budget.Run(life) })

	<-ctx.Done()
	polling.Wait()
	all := func(*lane) bool { return true }
	c.revoke(life, all)
	c.group.Close() // leaves the group; what is assigned meanwhile is lost at once
	c.lose(all)
	end()
	c.wg.Wait()
	if stuck := c.stuck(); len(stuck) > 0 {
		return newStuckError(stuck)
	}
	c.workers.Wait()
	var refused *refusedError
	if errors.As(context.Cause(ctx), &refused) {
		return fmt.Errorf("consumer: joining group %q: %w", c.cfg.Group, refused.error)
	}
	return nil
}

// stuck gives the handlers of lanes that are gone, each of them cancelled, a last moment to return,
// and lists the attempts of those that do not.
func (c *Consumer) stuck() (all []*attempt) {
	c.mu.Lock()
	strays := c.abandoned
	c.mu.Unlock()
	deadline := time.Now().Add(stuckAfter)
	for _, l := range strays {
		if !l.awaitIdle(deadline) {
			all = append(all, l.running()...)
		}
	}
	return all
}

// connect makes the clients and what hangs on them. Making a client connects to nothing yet, but
// the group client starts to join; so its siblings are seen to first, by prepare, through the retry
// client.
func (c *Consumer) connect() (err error) {
	if c.retryCl, err = c.clients.retryClient(); err != nil {
		return fmt.Errorf("consumer: retry client: %w", err)
	}
	c.clock = clock.New(&c.wg, c.ctx.Done(), c.watch)
	c.copyClients = forward.NewClients(c.ctx, c.clock, c.clients.producerClient, c.clients.singleClient)
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
	c.fetcher = c.newFetcher()
	c.workerPool = &workerPool{limit: c.cfg.Concurrency, wg: &c.workers, run: runUnit, clock: c.clock}
	return nil
}

// prepare waits for the broker, sees to the siblings, and joins the group.
func (c *Consumer) prepare(ctx context.Context) error {
	if err := c.retryUntil(ctx, func(err error) bool { return !refusesUs(err) }, "connecting to Kafka", func() error {
		err := c.retryCl.Ping(ctx)
		if err != nil {
			c.membership.NoteJoinError(err)
		}
		return err
	}); err != nil {
		return err
	}
	if err := c.retryUntilFinal(ctx, "provisioning siblings", func() error { return c.provisioner.ensure(ctx, c.cfg.Topics) }); err != nil {
		return err
	}
	if err := c.retryUntilFinal(ctx, "looking for retry topics that are not configured any more", func() error { return c.findDrainedTiers(ctx) }); err != nil {
		return err
	}
	if err := c.retryUntilFinal(ctx, "looking where the group stands", func() (err error) {
		if c.cfg.Start.kind != startEarliest { // where they make a difference
			c.knownSources, err = loadKnownSources(ctx, c.cluster, c.groups, c.cfg.Topics)
		}
		return err
	}); err != nil {
		return err
	}
	c.warnOfFormerGroups(ctx)
	group, err := c.clients.groupClient(kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(c.lost), kgo.AdjustFetchOffsetsFn(c.adjustFetchOffsets))
	if err != nil {
		return fmt.Errorf("consumer: group client: %w", err)
	}
	c.group = group
	c.sourcePauser.client = group
	close(c.joined)
	return nil
}

// retryUntilFinal repeats a step of the start until it succeeds, or fails in a way that does not
// pass by itself. A broker learns of a topic a moment after the controller made it, so what is
// wrong has to stay so for some 0.7 s.
func (c *Consumer) retryUntilFinal(ctx context.Context, what string, step func() error) error {
	return c.retryUntil(ctx, transient, what, step)
}

// retryUntil is settle where passes says which errors pass by themselves.
func (c *Consumer) retryUntil(ctx context.Context, passes func(error) bool, what string, step func() error) error {
	var final error
	looks := 0
	ok := c.retry(ctx, what, func() error {
		err := step()
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

// Ready is closed when the first assignment is there and the lanes of all its topics run, or when
// the member joined and got none. A lane that cannot start (a right or a sibling is missing, nobody
// knows its committed offset) is waited for no longer than a minute: then Health says that it is
// not OK, and why. Ready stays closed, whatever is assigned later.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

func (c *Consumer) readyOnce() { c.isReady.Do(func() { close(c.ready) }) }

// readyPoll is how often the lanes of the first assignment are looked at until they run.
const readyPoll = 50 * time.Millisecond

// awaitReady closes Ready when no lane is starting any more, as far as it is waited for.
func (c *Consumer) awaitReady() {
	for !c.hasStarted(time.Now()) {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(readyPoll):
		}
	}
	c.readyOnce()
}

// hasStarted reports whether no lane is starting, but those that take too long. A member that lost
// its lanes and joins again has yet to be told whether it gets some.
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

// Pause stops running records of the topics, on their source and on their retry topics, until
// Resume. Running handlers finish; partitions stay assigned, and the pause holds over rebalances.
// Topics that are not consumed are ignored.
func (c *Consumer) Pause(topics ...string) { c.setPaused(true, topics) }

// Resume ends Pause.
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
	if !on {
		close(c.resumed)
		c.resumed = make(chan struct{})
	}
	c.mu.Unlock()
	for _, l := range c.lanesNow() {
		l.wake()
	}
}

func (c *Consumer) isPaused(topic string) bool { return (*c.paused.Load())[topic] }

// untilResumed is closed when topics are resumed; nil where the topic is not paused.
func (c *Consumer) untilResumed(topic string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isPaused(topic) {
		return nil
	}
	return c.resumed
}

// retry repeats do, with backoff, until it succeeds or ctx ends.
func (c *Consumer) retry(ctx context.Context, what string, do func() error) bool {
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		wait := backoff.Of(n, 100*time.Millisecond, 10*time.Second)
		c.log.Warn("siding: trying again", "what", what, "wait", wait, "error", err)
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
		}
	}
}
