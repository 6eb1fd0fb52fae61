package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/retrytopics"
)

// Consumer consumes source topics as a member of a group, and moves aside what fails. Its methods are safe for concurrent
// use.
type Consumer struct {
	cfg      Config
	log      *slog.Logger
	siblings map[string]retrytopics.Siblings
	policies map[string]*Policy
	hooks    hooks
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
	producer      producers
	solo          solo
	admin         *kadm.Client
	source        *polling
	retryPoll     *retryPoll
	sourceGate    gate
	retryGate     gate
	parking       *parking
	refetches     perBroker
	decompressor  kgo.Decompressor // of what is fetched again
	clock         *clock
	slots         *slots
	before        map[string]sourceBefore
	joined        chan struct{} // closed when group is set, which kgo's callbacks wait for
	classic       bool          // the group speaks the classic protocol
	commitTimeout time.Duration
	wg            sync.WaitGroup // everything but workers
	workers       sync.WaitGroup
	quiet         quiet
	telemetry     *telemetry
	inflightBytes atomic.Int64
	laneCount     atomic.Int64
	limits        sync.Map // max.message.bytes (int32) of siblings, by topic, where known
	retentions    sync.Map // retention.ms (time.Duration, negative for ever) of siblings, by topic, where known

	membership   *membership
	subscription *subscription

	mu      sync.Mutex
	lanes   map[topicPartition]*lane
	ids     map[string]kadm.TopicID
	paused  atomic.Pointer[map[string]bool]
	resumed chan struct{}                       // closed by the next Resume, and replaced; mu guards it
	cuts    map[topicPartition]map[string]int64 // by lane and tier: where a log was truncated, until the lane starts anew from there
	looking map[topicPartition]bool             // positions out of range that are looked at again soon
	strays  []*lane                             // gone, with handlers that had not returned by then

	inherited map[string][]inherited   // by source: retry topics that are drained
	leftSaid  map[string]string        // of retry topics that are not configured, what was said last; inherit's
	newLanes  chan struct{}            // has room for one: lanes were assigned
	anew      map[string]bool          // source topics that were made anew while they were consumed
	old       map[topicPartition]int64 // what their lanes had committed in the old ones, until they are placed in the new ones
	topics    *topics
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
		hooks:    newHooks(cfg.Hooks),
		ready:    make(chan struct{}),
		joined:   make(chan struct{}),
		source:   newPolling(),

		membership:   newMembership(),
		subscription: newSubscription(),
		lanes:        map[topicPartition]*lane{},
		ids:          map[string]kadm.TopicID{},
		looking:      map[topicPartition]bool{},
		cuts:         map[topicPartition]map[string]int64{},
		inherited:    map[string][]inherited{},
		leftSaid:     map[string]string{},
		newLanes:     make(chan struct{}, 1),
		anew:         map[string]bool{},
		old:          map[topicPartition]int64{},
	}
	c.topics = newTopics(c)
	c.cfg.Topics, c.cfg.FormerGroups = slices.Clone(cfg.Topics), slices.Clone(cfg.FormerGroups)
	for _, t := range cfg.Topics {
		p := cfg.policyOf(t)
		c.policies[t] = &p
	}
	c.parking = newParking(cfg.MaxParkedBytes, &c.retryGate, c.lanesNow)
	c.host, _ = os.Hostname() // unknown is fine: it is a hint for people
	c.paused.Store(&map[string]bool{})
	c.resumed = make(chan struct{})
	return c, nil
}

// ErrRunning is returned by a second Run: a consumer runs once.
var ErrRunning = errors.New("consumer: Run was called before; make a new consumer to run again")

// Run provisions the siblings, joins the group and consumes until ctx ends; then it drains: running handlers have
// DrainTimeout to finish, each partition is committed up to its first record that is not finished, and the member leaves the
// group. It returns nil after a clean drain, a *StuckError where handlers ignored their cancelling, and otherwise an error that
// kept it from starting.
//
// A broker that cannot be reached at the start is waited for. A source topic that does not exist is an error, and so are
// siblings that are missing and may not be created, credentials that are refused, and a right on the group that is missing. What is refused
// after the first join is waited for, and Health says so.
func (c *Consumer) Run(ctx context.Context) (err error) {
	if !c.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer func() {
		if err == nil {
			c.membership.end()
		}
	}()
	ctx, c.refuse = context.WithCancelCause(ctx)
	defer c.refuse(nil)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	c.ctx, c.stop, c.values = life, ctx, valuesOf(ctx)

	if err := c.instrument(); err != nil {
		return fmt.Errorf("consumer: instruments: %w", err)
	}
	defer func() { _ = c.telemetry.observed.Unregister() }() // its error says that it was never registered
	if err := c.connect(); err != nil {
		return err
	}
	defer c.producer.close()
	defer c.solo.close()
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
	c.wg.Go(func() { c.topics.loop(polls) })
	c.wg.Go(func() { c.inheritLoop(polls) })
	if len(c.hooks.laneState) > 0 {
		c.wg.Go(func() { c.compareLanes(life) })
	}
	c.wg.Go(func() { c.parking.loop(life) })

	<-ctx.Done()
	polling.Wait()
	all := func(*lane) bool { return true }
	c.giveUp(life, all)
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

// refusedError is why Run ends by itself.
type refusedError struct{ error }

// stuck gives the handlers of lanes that are gone, each of them cancelled, a last moment to return, and lists the
// attempts of those that do not.
func (c *Consumer) stuck() (all []*attempt) {
	c.mu.Lock()
	strays := c.strays
	c.mu.Unlock()
	deadline := time.Now().Add(stuckAfter)
	for _, l := range strays {
		if !l.awaitIdle(deadline) {
			all = append(all, l.running()...)
		}
	}
	return all
}

// stray remembers a lane that is gone while handlers of it run.
func (c *Consumer) stray(l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strays = append(slices.DeleteFunc(c.strays, func(l *lane) bool { return len(l.running()) == 0 }), l)
}

// connect makes the clients and what hangs on them. Making a client connects to nothing yet, but the group client starts to
// join; so its siblings are seen to first, by prepare, through the retry client.
func (c *Consumer) connect() (err error) {
	if c.retryCl, err = c.retryClient(); err != nil {
		return fmt.Errorf("consumer: retry client: %w", err)
	}
	c.producer.open, c.solo.open = c.producerClient, c.soloClient
	if _, err = c.producer.client(); err != nil {
		c.retryCl.Close()
		return fmt.Errorf("consumer: producer: %w", err)
	}
	c.admin = kadm.NewClient(c.retryCl)
	c.classic = c.retryCl.OptValue(kgo.ServerSideBalancer) != true
	c.commitTimeout = commitTimeFor(c.retryCl, c.cfg.DrainTimeout)
	rebalance, _ := c.retryCl.OptValue(kgo.RebalanceTimeout).(time.Duration)
	c.membership.begin(rebalance + joinsLate)
	c.retryPoll = newRetryPoll(c, c.retryCl)
	c.retryGate.client = c.retryCl
	c.refetches.limit = refetchesPerBroker
	c.decompressor = kgo.DefaultDecompressor()
	if own, ok := c.retryCl.OptValue(kgo.WithDecompressor).(kgo.Decompressor); ok && own != nil {
		c.decompressor = own
	}
	c.clock = newClock(&c.wg, c.ctx.Done(), c.watch)
	c.slots = &slots{limit: c.cfg.Concurrency, wg: &c.workers, run: c.runUnit, clock: c.clock}
	return nil
}

// prepare waits for the broker, sees to the siblings, and joins the group.
func (c *Consumer) prepare(ctx context.Context) error {
	if err := c.settleUnless(ctx, func(err error) bool { return !refusesUs(err) }, "connecting to Kafka", func() error {
		err := c.retryCl.Ping(ctx)
		if err != nil {
			c.membership.trouble(err)
		}
		return err
	}); err != nil {
		return err
	}
	if err := c.settle(ctx, "provisioning siblings", func() error { return c.provision(ctx, c.cfg.Topics) }); err != nil {
		return err
	}
	if err := c.settle(ctx, "looking for retry topics that are not configured any more", func() error { return c.inherit(ctx) }); err != nil {
		return err
	}
	if err := c.settle(ctx, "looking where the group stands", func() error { return c.lookBefore(ctx) }); err != nil {
		return err
	}
	c.warnOfFormer(ctx)
	group, err := c.groupClient()
	if err != nil {
		return fmt.Errorf("consumer: group client: %w", err)
	}
	c.group = group
	c.sourceGate.client = group
	close(c.joined)
	return nil
}

// settle repeats a step of the start until it succeeds, or fails in a way that does not pass by itself. A broker learns of a topic a
// moment after the controller made it, so what is wrong has to stay so for some 0.7 s.
func (c *Consumer) settle(ctx context.Context, what string, step func() error) error {
	return c.settleUnless(ctx, transient, what, step)
}

// settleUnless is settle where passes says which errors pass by themselves.
func (c *Consumer) settleUnless(ctx context.Context, passes func(error) bool, what string, step func() error) error {
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

// Ready is closed when the first assignment is there and the lanes of all its topics run, or when the member joined and got none. A
// lane that cannot start (a right or a sibling is missing, nobody knows its committed offset) is waited for no longer than a minute: then
// Health says that it is not OK, and why. Ready stays closed, whatever is assigned later.
func (c *Consumer) Ready() <-chan struct{} { return c.ready }

func (c *Consumer) readyOnce() { c.isReady.Do(func() { close(c.ready) }) }

// readyLook is how often the lanes of the first assignment are looked at until they run.
const readyLook = 50 * time.Millisecond

// awaitReady closes Ready when no lane is starting any more, as far as it is waited for.
func (c *Consumer) awaitReady() {
	for !c.hasStarted(time.Now()) {
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(readyLook):
		}
	}
	c.readyOnce()
}

// hasStarted reports whether no lane is starting, but those that take too long. A member that lost its lanes and joins again has yet
// to be told whether it gets some.
func (c *Consumer) hasStarted(now time.Time) bool {
	lanes := c.lanesNow()
	if len(lanes) == 0 {
		h, _ := c.membership.health(now)
		return h.Joined
	}
	return !slices.ContainsFunc(lanes, func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.state == laneStarting && now.Sub(l.since) <= startsWithin
	})
}

// Pause stops running records of the topics, on their source and on their retry topics, until Resume. Running handlers
// finish; partitions stay assigned, and the pause holds over rebalances. Topics that are not consumed are ignored.
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

// errorText is what may be shown of an error; message is its own text. The user's function is foreign code.
func (c *Consumer) errorText(err error, message string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("the error's text could not be had: panic: %v", v)
		}
	}()
	if c.cfg.ErrorText != nil {
		return c.cfg.ErrorText(err)
	}
	return message
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
