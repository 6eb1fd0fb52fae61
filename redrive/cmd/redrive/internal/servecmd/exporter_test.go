package servecmd_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// The server sends its metrics over OTLP if OpenTelemetry's variables name a target, and the last
// ones as it ends. It does not run in parallel: the variables are the process's.
func TestNewExporter_SendsOverOTLP(t *testing.T) {
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var got []string
	complete := false
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, r.URL.Path); bytes.Contains(body, []byte("siding.dead_letters.unread")) {
			complete = true
			cancel()
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
	env := map[string]string{"SIDING_BROKERS": strings.Join(broker.ListenAddrs(), ","), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}
	if r := (roottest.Invocation{Env: env}).In(ctx, t, "serve", "--listen", "127.0.0.1:0"); r.Code != cli.ExitDone {
		t.Errorf("exit code %d: %s", r.Code, r.Stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	if !complete || got[0] != "/v1/metrics" {
		t.Errorf("the collector got %v, with the metrics: %v", got, complete)
	}
}
