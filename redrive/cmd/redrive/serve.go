package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/sidingkafka/siding/serve"
)

func newServe(t *tool) *cobra.Command {
	var file, listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Watch the dead-letter topics: metrics, and notifications of incidents",
		Long: `Serve watches the cluster's dead-letter topics, as far as their names follow the naming. It serves metrics for
Prometheus at /metrics, and tells people of incidents: open letters, new classes, letters that retention will delete.

Several servers share the work, and it does not matter which one is asked. A server keeps nothing: it can be stopped
and started at any moment. docs/serve.md has all keys of the configuration.`,
		Example: `  redrive serve
  redrive serve --config serve.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var cfg serve.Config
			var err error
			if file != "" {
				cfg, err = serve.Load(file)
			}
			if listen != "" {
				cfg.Listen = listen
			}
			return t.with(cmd.Context(), func(s *session) error { return runServer(cmd.Context(), s, cfg) }, err)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the `file` of the server's configuration")
	cmd.Flags().StringVar(&listen, "listen", "", "`address` of the HTTP server, host:port; in place of the file's")
	return cmd
}

// runServer serves until the context ends, which is no error.
func runServer(ctx context.Context, s *session, cfg serve.Config) error {
	cfg.Kafka, cfg.Naming = s.opts, s.Naming
	log := s.log
	if log == nil {
		log = slog.New(slog.NewTextHandler(s.screen.Words(), nil))
	}
	server, err := serve.New(cfg, log)
	if err != nil {
		return usage(err)
	}
	l, err := server.Listen()
	if err != nil {
		return err
	}
	s.screen.Say("http://%s", l.Addr())
	return server.Serve(ctx, l)
}
