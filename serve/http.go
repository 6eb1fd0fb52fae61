package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/access"
	"github.com/sidingkafka/siding/serve/internal/admit"
	"github.com/sidingkafka/siding/serve/internal/failure"
	"github.com/sidingkafka/siding/serve/internal/operate"
)

// Handler serves the console at /, the API under /api/v1, the metrics at /metrics, and the probes
// of an orchestrator: /livez, and /readyz, which fails until the topics were listed, and while the
// brokers are silent. Runs begin only while [Server.Run] runs, and the streams of the console's
// pages end with it. The handler can be mounted under a prefix with [http.StripPrefix]; Config.URL
// then has the prefix, too. An [http.Server] of HTTP/2 around it needs a WriteByteTimeout: else a
// client that reads nothing of its connection holds its answers for ever.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	all := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	metrics := s.gate.Limited(func(w http.ResponseWriter, r *http.Request, _ *access.Identity, _ error) { all.ServeHTTP(w, r) })
	if !s.cfg.Access.OpenMetrics {
		metrics = s.forSomebody(http.HandlerFunc(s.showMetrics))
	}
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.cluster.HasListed() {
			http.Error(w, operate.NotListed, http.StatusServiceUnavailable)
			return
		}
		if since := s.cluster.Pulse.SilentSince(); !since.IsZero() {
			http.Error(w, "the brokers have not answered since "+since.UTC().Format(time.RFC3339), http.StatusServiceUnavailable)
		}
	})
	s.api.Add(mux)
	mux.Handle("/", s.console)
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		admit.WriteProblem(w, failure.NewProblem(api.CrossOrigin, "a page of another site sent this request: it was not carried out"))
	}))
	h := sameOrigin.Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A client that reads nothing holds nothing for ever. Streams set limits of their own.
		// Where the writer has one.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(access.LongTime + admit.AnswerTime))
		h.ServeHTTP(w, r)
	})
}

// shutdownTime is how long open requests may take when the server ends.
const shutdownTime = 10 * time.Second

// Listen opens the address of the configuration, with TLS if that is configured.
func (s *Server) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	return l, nil
}

// peerTime is how long a connection of HTTP/2 may take no byte. A client that reads nothing of it
// would hold its answers for ever.
const peerTime = 30 * time.Second

// gcPercent keeps the heap small: what is kept of letters is large, and what comes and goes as they
// are read is small beside it.
const gcPercent = 25

// Serve answers requests on a listener, and runs the server, until ctx ends or one of them fails.
// It is for a process that does nothing else: unless GOGC is set, it has the collector keep the
// heap smaller than by default.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := s.newHTTPServer(s.Handler())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(ctx) }()
	go func() {
		err := h.Serve(l)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		ended <- err
	}()
	var first error
	select {
	case <-ctx.Done():
	case first = <-ended:
		ended <- nil
	}
	cancel()
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer stop()
	if err := h.Shutdown(closing); err != nil {
		_ = h.Close()
	}
	return errors.Join(first, <-ended, <-ended)
}

func (s *Server) newHTTPServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		// An answer's own limit needs room for the frame that ends the stream.
		HTTP2:    &http.HTTP2Config{WriteByteTimeout: peerTime},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// forSomebody answers those only who have a role on some topic, within the limits.
func (s *Server) forSomebody(h http.Handler) http.Handler {
	return s.gate.Limited(func(w http.ResponseWriter, r *http.Request, id *access.Identity, err error) {
		switch {
		case errors.Is(err, access.ErrNobody):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case len(id.Grants) == 0:
			http.Error(w, fmt.Sprintf("%s has no role; whoever configures the server gives one", id.Name), http.StatusForbidden)
		default:
			h.ServeHTTP(w, r.WithContext(access.With(r.Context(), id)))
		}
	})
}

// showMetrics answers with the metrics of the topics on which the sender has a role.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) {
	id := access.From(r.Context())
	var shown prometheus.GathererFunc = func() ([]*dto.MetricFamily, error) {
		all, err := s.registry.Gather()
		for _, f := range all {
			f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool {
				return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
					return l.GetName() == topicLabel && id.On(l.GetValue()) < access.Viewer
				})
			})
		}
		return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), err
	}
	promhttp.HandlerFor(shown, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}).ServeHTTP(w, r)
}

// topicLabel is the label that has the dead-letter topic in Prometheus.
const topicLabel = "messaging_destination_name"
