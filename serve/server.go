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
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/alert"
	"github.com/sidingkafka/siding/serve/internal/apply"
	"github.com/sidingkafka/siding/serve/internal/console"
	"github.com/sidingkafka/siding/serve/internal/httpapi"
	"github.com/sidingkafka/siding/serve/internal/notes"
	"github.com/sidingkafka/siding/serve/internal/notify"
	"github.com/sidingkafka/siding/serve/internal/operate"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
	"github.com/sidingkafka/siding/serve/payload"
)

// Server watches the dead-letter topics of a cluster. Its methods are safe for concurrent use.
type Server struct {
	parts
	console  *console.Console
	cfg      Config
	log      *slog.Logger
	registry *prometheus.Registry
	desk     *operate.Desk
	gate     *admit.Gate
	api      *httpapi.API
	cluster  *watch.Cluster
	applied  *apply.Rules
	retainer *apply.Retainer
	news     *notify.Meter
}

// New checks the configuration and returns all its errors. It reads the files that the
// configuration names, and connects to nothing. A nil log is [slog.Default].
func New(cfg Config, log *slog.Logger) (*Server, error) {
	if log == nil {
		log = slog.Default()
	}
	cfg = cfg.withDefaults()
	err := cfg.check()
	if cfg.Registry.URL != "" && cfg.OpenRegistry == nil {
		err = errors.Join(err, &KeyError{Key: "registry", Problem: "Config.OpenRegistry is not set: it takes registry.Open of package serve/registry"})
	}
	if cfg.Access.OIDC != nil && cfg.OpenID == nil {
		err = errors.Join(err, &KeyError{Key: "access.oidc", Problem: "Config.OpenID is not set: it takes oidc.Open of package serve/oidc"})
	}
	if err != nil {
		return nil, err
	}
	p, err := cfg.parts(log)
	if err != nil {
		return nil, err
	}
	r, err := redrive.New(redrive.Config{Kafka: cfg.Kafka, Naming: cfg.Naming, Values: payload.ValuesOf(p.codec), Logger: log})
	if err != nil {
		return nil, err
	}
	view := selection.View{Redact: p.redact, Codec: p.codec}
	cluster := watch.New(watch.Config{
		Kafka: cfg.Kafka, Naming: cfg.Naming, Group: cfg.Group, Refresh: cfg.Refresh, Redriver: r, View: view, Log: log,
		Settings: func(name string) watch.Settings { is := cfg.topicConfig(name); return is.settings() },
	})
	desk := operate.New(operate.Config{Kafka: cfg.Kafka, Naming: cfg.Naming, Group: cfg.Group, Cluster: cluster, Redriver: r, View: view, Rules: p.rules, Log: log})
	s := &Server{
		parts: p, cfg: cfg, log: log, registry: prometheus.NewRegistry(), gate: admit.New(p.who), cluster: cluster, desk: desk,
		applied: apply.NewRules(apply.RulesConfig{Kafka: cfg.Kafka, Cluster: cluster, Desk: desk, Redriver: r, View: view, Log: log}),
	}
	s.console = console.New(console.Config{Gate: s.gate, Browser: p.browser, Desk: desk, Redact: p.redact, Log: log})
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(s.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	readers := []sdkmetric.Option{sdkmetric.WithReader(exporter)}
	for _, r := range cfg.MetricReaders {
		readers = append(readers, sdkmetric.WithReader(r))
	}
	meters := sdkmetric.NewMeterProvider(readers...)
	var errs [3]error
	s.retainer, errs[0] = apply.NewRetainer(apply.RetainerConfig{
		Kafka: cfg.Kafka, S3: cfg.S3, Cluster: cluster, Desk: desk, Meter: meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), Log: log,
		Limits: func(topic string) apply.Limits { return apply.Limits(cfg.topicConfig(topic).Retention.withDefaults()) },
	})
	s.api = httpapi.New(httpapi.Config{Gate: s.gate, Desk: desk, Retainer: s.retainer, Redact: p.redact, Log: log})
	s.news, errs[1] = notify.NewMeter(meters.Meter(scope))
	_, errs[2] = s.observe(meters)
	if err = errors.Join(errs[:]...); err != nil {
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
	if s.codec != nil {
		defer s.codec.Close()
	}
	defer s.console.End()
	defer context.AfterFunc(ctx, s.console.End)() // while runs of rules end, too
	writer, err := notes.New(s.cfg.Kafka...)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer writer.Close(ctx)
	alerts := alert.New(ctx, alert.Config{
		URL: s.cfg.URL, Group: s.cfg.Group, Receivers: s.receivers, Writer: writer, Owns: s.cluster.Owns, Topic: s.cluster.Topic, Meter: s.news, Log: s.log,
	})
	defer alerts.Close(ctx)
	s.desk.Runner.Begin(ctx, writer)
	defer s.desk.Runner.End()
	var running sync.WaitGroup // what is read, rules and retention
	defer running.Wait()
	running.Go(func() { s.cluster.WatchGuards(ctx) })
	tick := time.NewTicker(s.cfg.Refresh)
	defer tick.Stop()
	for {
		s.cluster.Round(ctx, &running)
		alerts.Leave(ctx, time.Now())
		rules := s.desk.RuleList()
		var decided []*watch.Topic
		for name, t := range s.cluster.All() {
			watch.Circuits(t, rules, time.Now()) // each server observes what opens
			notifies, acts := t.Duties(s.cluster.Owns(name))
			if notifies {
				alerts.Judge(ctx, t, time.Now(), rules, s.cluster.Guards)
			}
			if acts {
				decided = append(decided, t)
				s.desk.Outcomes.LookAt(ctx, name, t.LacksOutcomes, &running)
			}
		}
		s.applied.Apply(ctx, decided, &running)
		s.applied.Adopt(&running)
		s.desk.Runner.Forget(time.Now())
		s.retainer.ApplyByClock(ctx, &running)
		if !alerts.AwaitAnswers(ctx, tick.C) {
			return nil
		}
	}
}
