package servecmd

// The verb that runs the server.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/connect"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/oidc"
	"github.com/sidingkafka/siding/serve/registry"
)

// NewServe makes the verb serve.
func NewServe(t *cli.Tool) *cobra.Command {
	var file, listen string
	var checks bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: console, HTTP API, metrics, notifications, rules, retention",
		Long: `Serve watches the cluster's dead-letter topics, as far as their names follow the naming. People look at letters and
redrive or discard them on a web console, programs do so by the HTTP API at /api/v1, and Prometheus reads /metrics. If
the configuration says so, the server also tells people of incidents, redrives letters by rules, and archives and
deletes letters by a retention. Without access control it listens on this machine only.

Several servers share the work, and it does not matter which one is asked. A server keeps nothing: it can be stopped
and started at any moment. docs/serve.md has all keys of the configuration. redrive demo --serve shows the console
without a cluster.`,
		Example: `  redrive serve
  redrive serve --config serve.yaml
  redrive serve --config serve.yaml --check`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := serverConfig(file, listen)
			switch {
			case checks && file == "":
				return cli.Usage(errors.New("--check has nothing to check: give --config"))
			case checks && err == nil:
				for _, warning := range cfg.Warnings() {
					t.Screen.Print("warning: %v", warning)
				}
				t.Screen.Print("%s and the files that it names are right", file)
				return nil
			case checks:
				return cli.Usage(err)
			}
			return t.With(cmd.Context(), func(s *cli.Session) error { return RunServer(cmd.Context(), s, cfg) }, err)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the `file` of the server's configuration")
	cmd.Flags().StringVar(&listen, "listen", "", "`address` of the HTTP server, host:port; in place of the file's")
	cmd.Flags().BoolVar(&checks, "check", false, "check the configuration and the files that it names, and end; no broker is asked")
	return cmd
}

// serverConfig reads the configuration of a server. Its error has every mistake, so that none is
// found when brokers were asked already.
func serverConfig(file, listen string) (cfg serve.Config, err error) {
	if file != "" {
		if cfg, err = serve.Load(file); err != nil {
			return cfg, err
		}
	}
	if listen == "" {
		return cfg, nil
	}
	cfg.Listen = listen
	if err := cfg.Check(); err != nil {
		return cfg, fmt.Errorf("--%w", err)
	}
	return cfg, nil
}

// withRedaction returns what the configuration hides, and what flags, variables and the profile do.
func withRedaction(r serve.Redact, also connect.RedactTexts) serve.Redact {
	return serve.Redact{
		Paths:    slices.Concat(r.Paths, also.Paths),
		Headers:  slices.Concat(r.Headers, also.Headers),
		Patterns: slices.Concat(r.Patterns, also.Patterns),
	}
}

// RunServer serves until the context ends, which is no error.
func RunServer(ctx context.Context, s *cli.Session, cfg serve.Config) error {
	exporter, end, err := newExporter(ctx, s.Env.Getenv)
	if err != nil {
		return cli.Usage(err)
	}
	defer end()
	if exporter != nil {
		cfg.MetricReaders = append(cfg.MetricReaders, exporter)
	}
	cfg.Kafka, cfg.Naming, cfg.OpenID = s.Kafka, s.Naming, oidc.Open
	cfg.OpenRegistry = registry.Open
	if cfg.Registry.URL == "" {
		cfg.Registry = s.Registry
	}
	cfg.Redact = withRedaction(cfg.Redact, s.RedactTexts)
	log := s.Log
	if log == nil {
		log = slog.New(slog.NewTextHandler(s.Screen.Words(), nil))
	}
	server, err := serve.New(cfg, log)
	if err != nil {
		return cli.Usage(err)
	}
	l, err := server.Listen()
	if err != nil {
		return err
	}
	s.Screen.Print("%s", addresses(&cfg, l.Addr()))
	return server.Serve(ctx, l)
}

// addresses returns that of the listener, after the one that people know, if there is one.
func addresses(cfg *serve.Config, listens net.Addr) string {
	scheme := "http://"
	if cfg.TLS.CertFile != "" {
		scheme = "https://"
	}
	at := scheme + listens.String()
	if cfg.URL == "" || cfg.URL == at {
		return at
	}
	return cfg.URL + ", listening on " + at
}

// exportVariables are those of OpenTelemetry's SDKs that name the target of metrics over OTLP.
var exportVariables = []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}

// exportTime is how long the last metrics may take when the server ends.
const exportTime = 5 * time.Second

// newExporter returns a reader that sends metrics to the target that the environment names; nil
// without one. Its end sends the last ones.
func newExporter(ctx context.Context, getenv func(string) string) (_ sdkmetric.Reader, end func(), err error) {
	if !slices.ContainsFunc(exportVariables, func(name string) bool { return getenv(name) != "" }) {
		return nil, func() {}, nil
	}
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("sending metrics over OTLP, as the variables OTEL_EXPORTER_OTLP_… ask for: %w", err)
	}
	reader := sdkmetric.NewPeriodicReader(exporter)
	return reader, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), exportTime)
		defer cancel()
		_ = reader.Shutdown(ctx) // the SDK has logged what failed
	}, nil
}
