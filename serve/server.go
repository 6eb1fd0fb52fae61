package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/held"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/pulse"
	"github.com/sidingkafka/siding/serve/internal/share"
)

// discoverEvery is how often the server looks for dead-letter topics that came or went.
const discoverEvery = 30 * time.Second

// retainsAtOnce bounds how many topics are pruned at the same time: one whose storage is silent
// does not hold up the others.
const retainsAtOnce = 3

// Server watches the dead-letter topics of a cluster. Its methods are safe for concurrent use.
type Server struct {
	parts
	console   *console.Console
	cfg       Config
	log       *slog.Logger
	redriver  *redrive.Redriver
	outcomes  *recorder
	registry  *prometheus.Registry
	runner    *runner
	limits    *limits
	reading   readPlaces
	pulse     *pulse.Pulse
	meters    *retentionMeters
	news      *notify.Meter
	guards    *held.Watch   // of the topics' sources
	retaining chan struct{} // has a place for each retention that is being applied
	listed    chan struct{} // closed when the topics were listed for the first time; mu is held

	mu      sync.Mutex
	sharing *share.Sharing    // while Run runs
	topics  map[string]*topic // by name
	why     error             // the last round's
	apart   error             // why this server may not join its group; nil if it may
}

// New checks the configuration and returns all its errors. It reads the files that the
// configuration names, and connects to nothing. A nil log is [slog.Default].
func New(cfg Config, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.Default()
	}
	cfg = cfg.withDefaults()
	r, err := redrive.New(redrive.Config{Kafka: cfg.Kafka, Naming: cfg.Naming, Logger: log})
	if err = errors.Join(cfg.check(), err); err != nil {
		return nil, err
	}
	p, err := cfg.parts(log)
	if err != nil {
		return nil, err
	}
	s := &Server{
		parts: p, cfg: cfg, log: log, redriver: r, outcomes: newRecorder(r, log), registry: prometheus.NewRegistry(), topics: map[string]*topic{},
		runner: &runner{log: log, live: map[string]*liveRun{}, stuck: map[string]hindrance{}}, limits: newLimits(requestsPerSecond, requestsAtOnce), retaining: make(chan struct{}, retainsAtOnce), listed: make(chan struct{}), reading: newReadPlaces(), pulse: pulse.New(cfg.Refresh),
	}
	s.guards = held.New(func() (sources []string) {
		for _, t := range s.all() {
			sources = append(sources, t.Source)
		}
		return sources
	}, log)
	s.console = console.New(consoleData{s}, consoleActions{s}, p.browser, log)
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(s.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	readers := []sdkmetric.Option{sdkmetric.WithReader(exporter)}
	for _, r := range cfg.MetricReaders {
		readers = append(readers, sdkmetric.WithReader(r))
	}
	meters := sdkmetric.NewMeterProvider(readers...)
	_, err = s.observe(meters)
	var metersErr, newsErr error
	s.meters, metersErr = newRetentionMeters(meters)
	s.news, newsErr = notify.NewMeter(meters.Meter(scope))
	if err = errors.Join(err, metersErr, newsErr); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	return s, nil
}

// Run watches the topics until ctx ends. It returns an error only if it could not begin.
func (s *Server) Run(ctx context.Context) error {
	cl, err := client.New(s.cfg.Kafka...)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer cl.Close()
	defer s.console.End()
	defer context.AfterFunc(ctx, s.console.End)() // while runs of rules end, too
	sharing, err := share.Join(s.cfg.Group, func() {}, s.cfg.Kafka...)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer sharing.Close()
	s.mu.Lock()
	s.sharing = sharing
	s.mu.Unlock()
	admin := s.pulse.Use(kadm.NewClient(cl))
	alerts, err := newAlerter(ctx, &s.cfg, s.log, s.receivers, s.news, sharing.Owns)
	if err != nil {
		return err
	}
	defer alerts.close(ctx, s.topic)
	s.runner.begin(ctx, alerts.writer)
	defer s.runner.end()
	var running sync.WaitGroup // what is read, rules and retention
	defer running.Wait()
	running.Go(func() { s.guards.Run(ctx, s.listed, s.cfg.Kafka...) })
	tick := time.NewTicker(s.cfg.Refresh)
	defer tick.Stop()
	for discovered := (time.Time{}); ; {
		var discoverErr error
		if time.Since(discovered) > discoverEvery || len(s.all()) == 0 {
			if discoverErr = s.discover(ctx, cl); discoverErr == nil {
				discovered = time.Now()
			}
			sharing.Set(slices.Collect(maps.Keys(s.all()))...)
		}
		s.note(ctx, cmp.Or(discoverErr, s.refresh(ctx, admin, &running))) // of what is known
		s.noteApart(sharing.Problem())
		alerts.leave(ctx, time.Now(), s.topic)
		rules := s.ruleList()
		var decided []*topic
		for name, t := range s.all() {
			t.circuits(rules, time.Now()) // each server hears of what opens, whoever owns the topic
			tells, acts := t.decides(sharing.Owns(name))
			if tells {
				alerts.see(ctx, t, time.Now(), rules, s.guards.Of(t.Source))
			}
			if acts {
				decided = append(decided, t)
				s.outcomes.lookAt(ctx, name, t.lacksOutcomes, &running)
			}
		}
		s.applyRules(ctx, decided, &running)
		s.adoptRuns(rules, &running)
		s.runner.forget(time.Now())
		s.applyRetention(ctx, &running)
		for waits := true; waits; {
			select {
			case <-ctx.Done():
				return nil
			case got := <-alerts.answers:
				alerts.answered(ctx, s.topic(got.topic), got)
			case <-tick.C:
				waits = false
			}
		}
		alerts.answeredAll(ctx, s.topic) // after a long round hardly one was read above
	}
}

// note keeps the error of a round, and logs a change of it.
func (s *Server) note(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && ctx.Err() == nil && (s.why == nil || s.why.Error() != err.Error()) {
		s.log.Warn("siding: dead-letter topics are not read; the server tries again", "error", err)
	}
	s.why = err
}

// noteApart keeps that the server may not join its group, and logs it once. Other errors pass.
func (s *Server) noteApart(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !failure.IsDenial(err) {
		s.apart = nil
		return
	}
	if s.apart == nil {
		s.apart = &redrive.DeniedError{Operation: "READ", Resource: "group", Name: s.cfg.Group, Err: err}
		s.log.Warn("siding: the server owns no topic: it reports no metrics of topics, tells of no incident, and applies no rule and no retention; it tries again", "error", s.apart)
	}
}

// all returns the topics by name.
func (s *Server) all() map[string]*topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.topics)
}

// topic returns a topic; nil if there is none of this name.
func (s *Server) topic(name string) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.topics[name]
}

// owned returns the topics that this server owns.
func (s *Server) owned() (all []*topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.topics {
		if s.sharing != nil && s.sharing.Owns(name) {
			all = append(all, t)
		}
	}
	return all
}

// discover looks for dead-letter topics that came or went. After an error about the configs of the
// topics they are taken over, with the configs that were known before.
func (s *Server) discover(ctx context.Context, cl *kgo.Client) error {
	within, end := context.WithTimeout(ctx, pulse.Patience)
	defer end()
	found, err := s.redriver.Topics(within)
	if err != nil && len(found) == 0 { // else offsets are missing, which refresh asks for anew
		return err
	}
	s.pulse.Beat()
	within, end = context.WithTimeout(ctx, pulse.Patience)
	defer end()
	configs, err := brokerConfigs(within, cl, found)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]*topic{}
	for _, f := range found {
		if now[f.Topic] = s.topics[f.Topic]; now[f.Topic] == nil {
			now[f.Topic] = &topic{DeadLetterTopic: f, config: s.cfg.topicConfig(f.Topic), book: book.New(f.Topic, f.Ledger, s.cfg.Kafka...), hidden: s.redact, starting: make(chan struct{}, 1), retainer: retainer{turn: make(chan struct{}, 1)}}
		}
		now[f.Topic].identify(f.TopicID, f.LedgerID)
		if err == nil {
			now[f.Topic].configure(configs[f.Topic], s.log)
		}
	}
	select {
	case <-s.listed:
		s.noteChanges(now)
	default:
		defer close(s.listed) // as soon as they are taken over
	}
	s.topics = now
	return err
}

// noteChanges logs which topics came and which are gone. mu is held.
func (s *Server) noteChanges(now map[string]*topic) {
	for name := range now {
		if s.topics[name] == nil {
			s.log.Info("siding: a dead-letter topic came", "topic", name)
		}
	}
	for name := range s.topics {
		if now[name] == nil {
			s.log.Warn("siding: a dead-letter topic is gone, or the server may not see it any more; its letters and runs are not shown, and nobody is told of it", "topic", name)
		}
	}
}

// refresh reads the topics that changed, a few at a time. The brokers are asked for the offsets of
// all at once. It does not wait for long: a topic that is large, or whose brokers are silent, holds
// up no other one, and is read on meanwhile.
func (s *Server) refresh(ctx context.Context, admin *kadm.Client, running *sync.WaitGroup) error {
	topics := s.all()
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
	s.pulse.Beat()
	sum := func(of kadm.ListedOffsets, topic string, told *int) (n int64) {
		for _, o := range of[topic] {
			if o.Err == nil {
				n += o.Offset
				*told++
			}
		}
		return n
	}
	var begun sync.WaitGroup
	for name, t := range topics {
		lacks := slices.ContainsFunc(slices.Collect(maps.Values(ends[t.Ledger])), func(o kadm.ListedOffset) bool {
			return errors.Is(o.Err, kerr.UnknownTopicOrPartition)
		})
		if !t.unledgered.Swap(lacks) && lacks {
			s.log.Warn("siding: nothing can be brought back, discarded, deleted or noted", "topic", name, "error", t.noLedger())
		}
		t.follow(asked)
		if !t.beginRefresh(asked) {
			continue
		}
		var at position
		at.start, at.end, at.ledger = sum(starts, name, &at.told), sum(ends, name, &at.told), sum(ends, t.Ledger, &at.told)
		if lacks {
			at.ledger = -1 // an empty one is another position
		}
		begun.Add(1)
		running.Go(func() {
			defer begun.Done()
			err := s.reading.read(ctx, t.isSmall(at), t.couldNot(), t.book.Records, func(tuned ...kgo.Opt) error { return t.refresh(ctx, at, asked, tuned...) })
			t.endRefresh(s.denied(ctx, t, err), time.Now())
			s.noteTrouble(ctx, t)
		})
	}
	ended := make(chan struct{})
	go func() {
		begun.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(min(s.cfg.Refresh, pulse.Patience)):
	}
	return nil
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

// noteTrouble logs why a topic is not read, or not all of it, if that is new.
func (s *Server) noteTrouble(ctx context.Context, t *topic) {
	if err := t.trouble(); err != nil && ctx.Err() == nil {
		s.log.Warn("siding: a dead-letter topic, or a part of what its ledger has, is not read; the server tries again", "topic", t.DeadLetterTopic.Topic, "error", err)
	}
}
