package consumer

import (
	"context"
	"log/slog"
	"maps"
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
	"github.com/sidingkafka/siding/consumer/internal/isolate"
	"github.com/sidingkafka/siding/consumer/internal/logthrottle"
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
	newLane       func(topic string, partition int32, member string) *lane
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
	clients       *clientFactory
	throttles     quota.Throttles // of all clients
	provisioner   *provisioner

	isolator  isolate.Isolator
	asks      *askqueue.Queue[*lane] // a feed of theirs wants a commit before the next tick
	restUntil atomic.Int64           // commits may wait for a join until then, in Unix nanoseconds

	membership   *session.Membership
	subscription *session.Subscription

	laneTable // its lock guards the fields below, too
	paused    atomic.Pointer[map[string]bool]
	// The group's offsets that kgo has fetched, until it begins to read there.
	fetched map[topicPartition]cluster.Offset
	// By lane and tier: the offset to which a log was truncated, until the lane restarts from
	// there.
	truncations map[topicPartition]map[string]int64

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
		l.Wake()
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
