package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/internal/askqueue"
	"github.com/sidingkafka/siding/consumer/internal/clock"
	"github.com/sidingkafka/siding/consumer/internal/cluster"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/logline"
	"github.com/sidingkafka/siding/consumer/internal/offsets"
	"github.com/sidingkafka/siding/consumer/internal/opentxn"
	"github.com/sidingkafka/siding/consumer/internal/session"
	"github.com/sidingkafka/siding/consumer/internal/tier"
	"github.com/sidingkafka/siding/consumer/internal/topicmonitor"
	"github.com/sidingkafka/siding/headers"
)

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
		laneTable:          laneTable{lanes: map[topicPartition]*lane{}},
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
	c.newLane = func(topic string, partition int32, member string) *lane { return newLane(c, topic, partition, member) }
	c.isolator.Init(isolator{c}, c.log)
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
	memberLog{c}.logStarting()
	defer func() {
		if err == nil {
			c.membership.End()
		}
		memberLog{c}.logEnd(began, err)
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
	defer c.telemetry.end()
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
	c.wg.Go(func() { committer{c}.commitLoop(life) })
	c.wg.Go(func() { c.isolator.Run(polls) })
	heartbeat, _ := c.retryCl.OptValue(kgo.HeartbeatInterval).(time.Duration)
	c.wg.Go(func() { c.topics.Loop(polls, heartbeat) })
	c.wg.Go(func() { tierFinder{c}.drainedTierLoop(polls) })
	c.wg.Go(func() { c.recordLog.summarize(polls) })
	c.wg.Go(func() { memberLog{c}.logJoining(polls) })
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
		{"finding drained retry topics", func() error { return tierFinder{c}.findDrainedTiers(ctx) }},
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
	tierFinder{c}.warnOfFormerGroups(ctx)
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

// Brokers that are silent (frozen, or cut off) answer no request, and keep connections open. kgo
// awaits them for 10 s and more, and some of its waits do not see their context end. So a shutdown
// has a time by which it closes the connections itself, which ends every wait.

const (
	// lastCommitWithin is the time that the last commit of a shutdown has after the drain at least.
	lastCommitWithin = 5 * time.Second
	// hangUpWithin is how long after DrainTimeout a shutdown closes the connections. Cancelled
	// handlers, the last commit and 2 s for leaving the group fit in.
	hangUpWithin = stuckAfter + lastCommitWithin + 2*time.Second
	// leavesWithin is how long after its last commit a shutdown closes the connections.
	leavesWithin = 5 * time.Second
	// joinEndsWithin is how long leaving the group waits for a join that is under way.
	joinEndsWithin = time.Second
)

// shutDown drains all lanes, leaves the group, and waits for what Run began. polling are the poll
// loops, which end with ctx; end ends the consumer's other loops. Beside handlers that ignore their
// cancellation, it takes DrainTimeout and hangUpWithin at most.
func (c *Consumer) shutDown(ctx context.Context, end func(), polling *sync.WaitGroup) error {
	c.hangUpAfter(c.cfg.DrainTimeout + hangUpWithin)
	all := func(*lane) bool { return true }
	drain, cancel := context.WithTimeout(c.ctx, c.cfg.DrainTimeout+stuckAfter+lastCommitWithin)
	c.revoke(drain, "Run ends", all)
	cancel()
	c.hangUpAfter(leavesWithin)
	polling.Wait()
	c.leave() // partitions assigned until then are lost at once
	c.lose(all)
	end()
	c.wg.Wait()
	if stuck := c.stuck(); len(stuck) > 0 {
		return &StuckError{Records: stuck}
	}
	c.workers.Wait()
	var refused *refusedError
	if errors.As(context.Cause(ctx), &refused) {
		return fmt.Errorf("consumer: joining group %q: %w", c.cfg.Group, refused.error)
	}
	return nil
}

// leave leaves the group and closes its client.
//
// kgo leaves only after a join that is under way, and a join waits for the slowest member of the
// group. So leave ends the client before the join does, and takes the member out of the group
// itself. Otherwise the group would assign partitions to a member that is gone, and no member would
// run their records until its session times out. A static member stays in the group.
func (c *Consumer) leave() {
	if c.classic && c.group.OptValue(kgo.InstanceID) == "" {
		defer time.AfterFunc(joinEndsWithin, c.endGroup).Stop()
	}
	c.group.Close()
	member, _ := c.group.GroupMetadata()
	if c.clients.groupCtx.Err() == nil || !c.classic || member == "" {
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.cfg.Group, member // versions 0 to 2
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	req.Members = append(req.Members, m)
	_, _ = req.RequestWith(c.clients.ctx, c.retryCl) // the session's timeout does it otherwise
}

// hangUpAfter closes the connections to all brokers after a time, unless Run has returned before.
func (c *Consumer) hangUpAfter(wait time.Duration) {
	t := time.AfterFunc(wait, func() {
		if c.clients.ctx.Err() == nil {
			c.log.Warn("siding: brokers did not answer in time; their connections are closed", "waited", wait)
		}
		c.hangUp()
	})
	context.AfterFunc(c.clients.ctx, func() { t.Stop() })
}

// stuck waits up to stuckAfter for the cancelled handlers of closed lanes to return. It lists where
// the records of those handlers were read that do not.
func (c *Consumer) stuck() (records []headers.Position) {
	c.mu.Lock()
	strays := c.abandoned
	c.mu.Unlock()
	deadline := time.Now().Add(stuckAfter)
	for _, l := range strays {
		for _, a := range l.awaitIdle(deadline) {
			records = append(records, a.physical())
		}
	}
	return records
}

// standing returns the partitions that may be held up, since they are not read on.
func standing(lanes []*lane) (all []opentxn.Partition) {
	for _, l := range lanes {
		l.mu.Lock()
		for f := range l.read() {
			if next := f.tracker.Next; f.position.At(next) && l.state == laneRunning {
				all = append(all, opentxn.Partition{Topic: f.topic, Partition: f.partition, Next: next, Position: &f.position})
			}
		}
		l.mu.Unlock()
	}
	return all
}
