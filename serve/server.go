package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

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
	cluster   *watch.Cluster
	meters    *retentionMeters
	news      *notify.Meter
	retaining chan struct{} // has a place for each retention that is being applied
	retainers sync.Map      // of *retainer, by topic
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
		parts: p, cfg: cfg, log: log, redriver: r, outcomes: newRecorder(r, log), registry: prometheus.NewRegistry(), limits: newLimits(requestsPerSecond, requestsAtOnce), retaining: make(chan struct{}, retainsAtOnce),
		runner: &runner{log: log, live: map[string]*liveRun{}, stuck: map[string]hindrance{}},
		cluster: watch.New(watch.Config{
			Kafka: cfg.Kafka, Group: cfg.Group, Refresh: cfg.Refresh, Redriver: r, Redact: p.redact, Log: log,
			Settings: func(name string) watch.Settings { is := cfg.topicConfig(name); return is.settings() },
		}),
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
	if err := s.cluster.Begin(); err != nil {
		return err
	}
	defer s.cluster.End()
	defer s.console.End()
	defer context.AfterFunc(ctx, s.console.End)() // while runs of rules end, too
	alerts, err := newAlerter(ctx, &s.cfg, s.log, s.receivers, s.news, s.cluster.Owns)
	if err != nil {
		return err
	}
	defer alerts.close(ctx, s.cluster.Topic)
	s.runner.begin(ctx, alerts.writer)
	defer s.runner.end()
	var running sync.WaitGroup // what is read, rules and retention
	defer running.Wait()
	running.Go(func() { s.cluster.WatchGuards(ctx) })
	tick := time.NewTicker(s.cfg.Refresh)
	defer tick.Stop()
	for {
		s.cluster.Round(ctx, &running)
		alerts.leave(ctx, time.Now(), s.cluster.Topic)
		rules := s.ruleList()
		var decided []*watch.Topic
		for name, t := range s.cluster.All() {
			t.Circuits(rules, time.Now()) // each server hears of what opens, whoever owns the topic
			tells, acts := t.Duties(s.cluster.Owns(name))
			if tells {
				alerts.see(ctx, t, time.Now(), rules, s.cluster.Guards.Of(t.Source))
			}
			if acts {
				decided = append(decided, t)
				s.outcomes.lookAt(ctx, name, t.LacksOutcomes, &running)
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
				alerts.answered(ctx, s.cluster.Topic(got.topic), got)
			case <-tick.C:
				waits = false
			}
		}
		alerts.answeredAll(ctx, s.cluster.Topic) // after a long round hardly one was read above
	}
}
