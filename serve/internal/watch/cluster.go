package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/letterindex"
	"github.com/sidingkafka/siding/serve/internal/pulse"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/share"
)

// discoverEvery is how often the server looks for dead-letter topics that came or went.
const discoverEvery = 30 * time.Second

// Config is what a [Cluster] depends on.
type Config struct {
	Kafka    []kgo.Opt
	Naming   retrytopics.Naming
	Group    string        // by which servers share the topics
	Refresh  time.Duration // how often there is a round
	Redriver *redrive.Redriver
	View     selection.View
	Settings func(topic string) Settings
	Log      *slog.Logger
}

// Cluster is what the server knows of the dead-letter topics of a cluster. Its methods are safe for
// concurrent use, but for those of the rounds.
type Cluster struct {
	cfg Config
	// Pulse knows whether the brokers answer, and Guards what holds the topics' sources back.
	Pulse   *pulse.Pulse
	Guards  *held.Watch
	reading readPlaces
	listed  chan struct{} // closed when the topics were listed for the first time; mu is held

	client     *kgo.Client // while the rounds go on
	admin      *kadm.Client
	discovered time.Time

	mu          sync.Mutex
	sharing     *share.Sharing    // while the rounds go on
	topics      map[string]*Topic // by name
	why         error             // the last round's
	groupDenied error             // why this server may not join its group; nil if it may
}

// New returns a cluster of which nothing is known yet.
func New(cfg Config) *Cluster {
	c := &Cluster{cfg: cfg, topics: map[string]*Topic{}, listed: make(chan struct{}), reading: newReadPlaces(), Pulse: pulse.New(cfg.Refresh)}
	c.Guards = held.New(func() (sources []string) {
		for _, t := range c.All() {
			sources = append(sources, t.Source)
		}
		return sources
	}, cfg.Naming, cfg.Log)
	return c
}

// Begin joins the servers that share the topics. The caller ends the rounds by end.
func (c *Cluster) Begin() error {
	cl, err := client.New(c.cfg.Kafka...)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	sharing, err := share.Join(c.cfg.Group, func() {}, c.cfg.Kafka...)
	if err != nil {
		cl.Close()
		return fmt.Errorf("serve: %w", err)
	}
	c.client, c.admin = cl, c.Pulse.Use(kadm.NewClient(cl))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sharing = sharing
	return nil
}

// End leaves the other servers.
func (c *Cluster) End() {
	c.sharing.Close()
	c.client.Close()
}

// Round looks for topics that came or went, when it is time, and reads those that changed. running
// has what goes on after it.
func (c *Cluster) Round(ctx context.Context, running *sync.WaitGroup) {
	var err error
	if time.Since(c.discovered) > discoverEvery || len(c.All()) == 0 {
		if err = c.discover(ctx, c.client); err == nil {
			c.discovered = time.Now()
		}
		c.sharing.Set(slices.Collect(maps.Keys(c.All()))...)
	}
	c.keepError(ctx, cmp.Or(err, c.refresh(ctx, c.admin, running)))
	c.setGroupDenied(c.sharing.Problem())
}

// Owns reports whether this server owns a topic.
func (c *Cluster) Owns(topic string) bool { return c.sharing.Owns(topic) }

// WatchGuards looks what holds the topics' sources back, until ctx ends.
func (c *Cluster) WatchGuards(ctx context.Context) { c.Guards.Run(ctx, c.listed, c.cfg.Kafka...) }

// listTime is how long a request for a topic waits for a server that has just started, and has not
// listed the topics yet, which takes some round trips to the brokers.
const listTime = 5 * time.Second

// HasListed reports whether the topics were listed by now.
func (c *Cluster) HasListed() bool {
	select {
	case <-c.listed:
		return true
	default:
		return false
	}
}

// AwaitListed is [cluster.hasListed], and waits if the server has just started.
func (c *Cluster) AwaitListed(ctx context.Context) bool {
	select {
	case <-c.listed:
		return true
	case <-ctx.Done():
	case <-time.After(listTime):
	}
	return false
}

// keepError keeps the error of a round, and logs a change of it.
func (c *Cluster) keepError(ctx context.Context, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && ctx.Err() == nil && (c.why == nil || c.why.Error() != err.Error()) {
		c.cfg.Log.Warn("siding: dead-letter topics are not read; the server tries again", "error", err)
	}
	c.why = err
}

// setGroupDenied keeps that the server may not join its group, and logs it once. Other errors pass.
func (c *Cluster) setGroupDenied(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !failure.IsDenial(err) {
		c.groupDenied = nil
		return
	}
	if c.groupDenied == nil {
		c.groupDenied = &redrive.DeniedError{Operation: "READ", Resource: "group", Name: c.cfg.Group, Err: err}
		c.cfg.Log.Warn("siding: the server owns no topic: it reports no metrics of topics, tells of no incident, and applies no rule and no retention; it tries again", "error", c.groupDenied)
	}
}

// All returns the topics by name.
func (c *Cluster) All() map[string]*Topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.topics)
}

// Topic returns a topic; nil if there is none of this name.
func (c *Cluster) Topic(name string) *Topic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.topics[name]
}

// Owned returns the topics that this server owns.
func (c *Cluster) Owned() (all []*Topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.topics {
		if c.sharing != nil && c.sharing.Owns(name) {
			all = append(all, t)
		}
	}
	return all
}

// discover looks for dead-letter topics that came or went. After an error about the configs of the
// topics they are taken over, with the configs that were known before.
func (c *Cluster) discover(ctx context.Context, cl *kgo.Client) error {
	within, end := context.WithTimeout(ctx, pulse.Patience)
	defer end()
	found, err := c.cfg.Redriver.Topics(within)
	if err != nil && len(found) == 0 { // else offsets are missing, which refresh asks for anew
		return err
	}
	c.Pulse.Beat()
	within, end = context.WithTimeout(ctx, pulse.Patience)
	defer end()
	configs, err := brokerConfigs(within, cl, found)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]*Topic{}
	for _, f := range found {
		if now[f.Topic] = c.topics[f.Topic]; now[f.Topic] == nil {
			now[f.Topic] = newTopic(f, c.cfg.Settings(f.Topic), letterindex.New(f.Topic, f.Ledger, c.cfg.Kafka...), c.cfg.View)
		}
		now[f.Topic].identify(f.TopicID, f.LedgerID)
		if err == nil {
			now[f.Topic].configure(configs[f.Topic], c.cfg.Log)
		}
	}
	select {
	case <-c.listed:
		c.logChanges(now)
	default:
		defer close(c.listed) // as soon as they are taken over
	}
	c.topics = now
	return err
}

// logChanges logs which topics came and which are gone. mu is held.
func (c *Cluster) logChanges(now map[string]*Topic) {
	for name := range now {
		if c.topics[name] == nil {
			c.cfg.Log.Info("siding: a dead-letter topic came", "topic", name)
		}
	}
	for name := range c.topics {
		if now[name] == nil {
			c.cfg.Log.Warn("siding: a dead-letter topic is gone, or the server may not see it any more; its letters and runs are not shown, and nobody is told of it", "topic", name)
		}
	}
}

// refresh reads the topics that changed, a few at a time. The brokers are asked for the offsets of
// All at once. It does not wait for long: a topic that is large, or whose brokers are silent, holds
// up no other one, and is read on meanwhile.
func (c *Cluster) refresh(ctx context.Context, admin *kadm.Client, running *sync.WaitGroup) error {
	topics := c.All()
	if len(topics) == 0 {
		return nil
	}
	var names, ledgers []string
	for name, t := range topics {
		names, ledgers = append(names, name), append(ledgers, t.Ledger)
	}
	asked := time.Now()
	within, end := context.WithTimeout(ctx, pulse.Patience)
	defer end()
	starts, ends, err := listOffsets(within, admin, names, ledgers)
	if failure.IsDenial(err) { // kadm gives up at the first topic that is denied
		if seen, unseen := admin.ListTopics(within); unseen == nil {
			hidden := func(name string) bool { return !seen.Has(name) }
			starts, ends, err = listOffsets(within, admin, slices.DeleteFunc(names, hidden), slices.DeleteFunc(ledgers, hidden))
		}
	}
	if err != nil && len(ends) == 0 {
		return fmt.Errorf("list offsets: %w", err)
	}
	c.Pulse.Beat()
	var begun sync.WaitGroup
	for name, t := range topics {
		lacks := slices.ContainsFunc(slices.Collect(maps.Values(ends[t.Ledger])), func(o kadm.ListedOffset) bool {
			return errors.Is(o.Err, kerr.UnknownTopicOrPartition)
		})
		if !t.Unledgered.Swap(lacks) && lacks {
			c.cfg.Log.Warn("siding: nothing can be brought back, discarded, deleted or noted", "topic", name, "error", t.NoLedger())
		}
		t.follow(asked)
		if !t.beginRefresh(asked) {
			continue
		}
		at := positionOf(name, t.Ledger, starts, ends)
		if lacks {
			at.ledger = -1 // an empty one is another position
		}
		begun.Add(1)
		running.Go(func() {
			defer begun.Done()
			c.read(ctx, t, at, asked)
		})
	}
	ended := make(chan struct{})
	go func() {
		begun.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(min(c.cfg.Refresh, pulse.Patience)):
	}
	return nil
}

// read reads a topic up to a position, of which the brokers were asked at a time.
func (c *Cluster) read(ctx context.Context, t *Topic, at position, asked time.Time) {
	err := c.reading.read(ctx, t.isSmall(at), t.refreshFailed(), t.Index.Records, func(tuned ...kgo.Opt) error { return t.refresh(ctx, at, asked, tuned...) })
	t.endRefresh(c.Denied(ctx, t, err), time.Now())
	c.logTrouble(ctx, t)
}

// positionOf sums the offsets that the brokers answered for a topic and its ledger.
func positionOf(topic, ledger string, starts, ends kadm.ListedOffsets) (at position) {
	sum := func(of kadm.ListedOffsets, topic string, answered *int) (n int64) {
		for _, o := range of[topic] {
			if o.Err == nil {
				n += o.Offset
				*answered++
			}
		}
		return n
	}
	at.start, at.end, at.ledger = sum(starts, topic, &at.answered), sum(ends, topic, &at.answered), sum(ends, ledger, &at.answered)
	return at
}

// listOffsets returns the starts of dead-letter topics, and the ends of them and of ledgers.
func listOffsets(ctx context.Context, admin *kadm.Client, names, ledgers []string) (starts, ends kadm.ListedOffsets, err error) {
	if len(names) == 0 { // that would ask for those of all topics
		return nil, nil, kerr.TopicAuthorizationFailed
	}
	var err1 error
	var listing sync.WaitGroup // at once: a broker that is silent takes the time of both
	listing.Go(func() { starts, err1 = admin.ListStartOffsets(ctx, names...) })
	ends, err2 := admin.ListEndOffsets(ctx, slices.Concat(names, ledgers)...)
	listing.Wait()
	return starts, ends, errors.Join(err1, err2)
}

// logTrouble logs why a topic is not read, or not all of it, if that is new.
func (c *Cluster) logTrouble(ctx context.Context, t *Topic) {
	if err := t.trouble(); err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn("siding: a dead-letter topic, or a part of what its ledger has, is not read; the server tries again", "topic", t.DeadLetterTopic.Topic, "error", err)
	}
}

// Denied adds to an error what the server's own user lacks on a topic, if it is a broker's denial.
// A broker says of which topic it denied something, and not what: so it is asked for all that the
// server does there. Another error stays as it is, and so does a denial that cannot be explained.
func (c *Cluster) Denied(ctx context.Context, t *Topic, err error) error {
	if _, named := errors.AsType[*redrive.DeniedError](err); named || !failure.IsDenial(err) {
		return err
	}
	name := t.DeadLetterTopic.Topic
	needs := map[string][]string{name: {"READ"}, t.Ledger: {"READ", "WRITE"}}
	if t.Settings.Retains {
		needs[name] = append(needs[name], "DELETE")
	}
	if lacks := failure.Lacks(ctx, needs, c.cfg.Kafka...); len(lacks) > 0 {
		return errors.Join(append(lacks, err)...)
	}
	return err
}

// Trouble says why not all is known of a topic, or done about it; empty if there is no reason.
// missed is why its index missed something.
func (c *Cluster) Trouble(t *Topic, missed error) string {
	c.mu.Lock()
	round, groupDenied := c.why, c.groupDenied
	c.mu.Unlock()
	t.mu.Lock()
	failed, broken, unknown, forgets := t.failed, t.Broken(), t.unknown, t.forgets
	t.mu.Unlock()
	missed = cmp.Or(failed, missed) // names what is denied
	var silent error
	if since := t.SilentSince(c.Pulse); !since.IsZero() {
		silent = fmt.Errorf("nothing came of the brokers since %s: the numbers are as of then", since.UTC().Format(time.DateTime+" UTC"))
	}
	var all []string
	for _, err := range []error{silent, missed, broken, unknown, forgets, t.HasLedger(), groupDenied} {
		if err != nil {
			all = append(all, failure.Text(err))
		}
	}
	if len(all) == 0 && round != nil {
		return "the brokers could not be asked for what came since; the server's log has the reason"
	}
	return failure.Outside(c.cfg.View.Redact, strings.Join(all, "; ")) // errors may quote letters
}
