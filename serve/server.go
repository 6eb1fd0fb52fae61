package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/book"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/share"
)

// discoverEvery is how often the server looks for dead-letter topics that came or went.
const discoverEvery = 30 * time.Second

// readsAtOnce bounds how many topics are read at the same time.
const readsAtOnce = 2

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
	registry  *prometheus.Registry
	runner    *runner
	limits    *limits
	reading   chan struct{} // has a place for each topic that is being read
	meters    *retentionMeters
	retaining chan struct{} // has a place for each retention that is being applied

	mu      sync.Mutex
	sharing *share.Sharing    // while Run runs
	topics  map[string]*topic // by name
	ready   bool              // the topics were listed
	why     error             // the last round's
}

// New checks the configuration and returns all its errors. It reads the files that the
// configuration names, and connects to nothing.
func New(cfg Config, log *slog.Logger) (*Server, error) {
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
		parts: p, cfg: cfg, log: log, redriver: r, registry: prometheus.NewRegistry(), topics: map[string]*topic{},
		runner: &runner{log: log, live: map[string]*liveRun{}}, limits: newLimits(requestsPerSecond, requestsAtOnce), retaining: make(chan struct{}, retainsAtOnce), reading: make(chan struct{}, readsAtOnce),
	}
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
	var metersErr error
	s.meters, metersErr = newRetentionMeters(meters)
	if err = errors.Join(err, metersErr); err != nil {
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
	admin := kadm.NewClient(cl)
	alerts, err := newAlerter(ctx, &s.cfg, s.log, s.receivers, sharing.Owns)
	if err != nil {
		return err
	}
	defer alerts.close(ctx, func(name string) *topic { return s.all()[name] })
	s.runner.begin(ctx, alerts.writer)
	defer s.runner.end()
	var running sync.WaitGroup // what is read, rules and retention
	defer running.Wait()
	tick := time.NewTicker(s.cfg.Refresh)
	defer tick.Stop()
	for discovered := (time.Time{}); ; {
		var err error
		if time.Since(discovered) > discoverEvery {
			if err = s.discover(ctx, admin); err == nil {
				discovered = time.Now()
				sharing.Set(slices.Collect(maps.Keys(s.all()))...)
			}
		}
		if err == nil {
			err = s.refresh(ctx, admin, &running)
		}
		s.note(ctx, err)
		alerts.forget(sharing.Owns)
		rules := s.ruleList()
		var decided []*topic
		for name, t := range s.all() {
			t.circuits(rules, time.Now()) // each server hears of what opens, whoever owns the topic
			if t.decides(sharing.Owns(name)) {
				decided = append(decided, t)
			}
		}
		for _, t := range decided {
			alerts.see(ctx, t, time.Now(), rules)
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
				if t := s.all()[got.topic]; t != nil {
					alerts.answered(ctx, t, got)
				}
			case <-tick.C:
				waits = false
			}
		}
	}
}

// note keeps the error of a round, and logs a change of it.
func (s *Server) note(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && ctx.Err() == nil && (s.why == nil || s.why.Error() != err.Error()) {
		s.log.Warn("siding: dead-letter topics are not read; the server tries again", "error", err)
	}
	s.ready, s.why = s.ready || err == nil, err
}

// all returns the topics by name.
func (s *Server) all() map[string]*topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.topics)
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

// discover looks for dead-letter topics that came or went.
func (s *Server) discover(ctx context.Context, admin *kadm.Client) error {
	found, err := s.redriver.Topics(ctx)
	if err != nil {
		return err
	}
	kept, err := retentions(ctx, admin, found)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]*topic{}
	for _, f := range found {
		if now[f.Topic] = s.topics[f.Topic]; now[f.Topic] == nil {
			now[f.Topic] = &topic{DeadLetterTopic: f, config: s.cfg.topicConfig(f.Topic), book: book.New(f.Topic, f.Ledger, s.cfg.Kafka...), starting: make(chan struct{}, 1)}
		}
		now[f.Topic].setRetention(kept[f.Topic])
	}
	s.topics = now
	return nil
}

// retentions returns how long the topics keep letters; zero if they keep them for ever, or if that
// is not known.
func retentions(ctx context.Context, admin *kadm.Client, topics []redrive.DeadLetterTopic) (map[string]time.Duration, error) {
	var names []string
	for _, t := range topics {
		names = append(names, t.Topic)
	}
	if len(names) == 0 {
		return nil, nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("describe the configs of dead-letter topics: %w", err)
	}
	kept := map[string]time.Duration{}
	for _, c := range configs {
		for _, is := range c.Configs {
			if is.Key == "retention.ms" {
				ms, _ := strconv.ParseInt(is.MaybeValue(), 10, 64)
				if ms > 0 && ms <= math.MaxInt64/int64(time.Millisecond) { // else it is for ever
					kept[c.Name] = time.Duration(ms) * time.Millisecond
				}
			}
		}
	}
	return kept, nil
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
	starts, err1 := admin.ListStartOffsets(ctx, names...)
	ends, err2 := admin.ListEndOffsets(ctx, append(names, ledgers...)...)
	if err := errors.Join(err1, err2); err != nil && len(ends) == 0 {
		return fmt.Errorf("list offsets: %w", err)
	}
	sum := func(of kadm.ListedOffsets, topic string) (n int64) {
		for _, o := range of[topic] {
			n += o.Offset
		}
		return n
	}
	var begun sync.WaitGroup
	for name, t := range topics {
		if !t.beginRefresh(asked) {
			continue
		}
		at := position{sum(starts, name), sum(ends, name), sum(ends, t.Ledger)}
		begun.Add(1)
		running.Go(func() {
			defer begun.Done()
			select {
			case s.reading <- struct{}{}:
				err := t.refresh(ctx, s.redriver, at, asked)
				<-s.reading
				t.endRefresh(err, time.Now())
			case <-ctx.Done():
				t.endRefresh(nil, time.Now())
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		begun.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(s.cfg.Refresh):
	}
	for name, t := range topics {
		if err := t.problem(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
