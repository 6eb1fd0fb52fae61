package storage

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/internal/letterstest"
)

// cluster is an embedded broker with dead-letter topics.
type cluster struct {
	letterstest.Broker
	fake *kfake.Cluster
}

func newCluster(t *testing.T, sources ...string) *cluster {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, letterstest.TopicsOf(sources)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return &cluster{Broker: letterstest.On(t, fake.ListenAddrs()), fake: fake}
}

// run runs a server until the test ends.
func (c *cluster) run(cfg serve.Config) *serve.Server {
	c.T.Helper()
	cfg.Kafka, cfg.Refresh = c.Opts, 500*time.Millisecond
	s, err := serve.New(cfg, slog.New(slog.NewTextHandler(c.T.Output(), nil)))
	if err != nil {
		c.T.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			c.T.Errorf("Run returned %v", err)
		}
	})
	c.T.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// watched runs a server until it has judged the topic orders.dlq.
func (c *cluster) watched(cfg serve.Config) *serve.Server {
	c.T.Helper()
	s := c.run(cfg)
	h := s.Handler()
	eventually(c.T, "the topic is judged", func() bool {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
		h.ServeHTTP(w, r)
		return strings.Contains(w.Body.String(), `siding_dead_letters_held{messaging_destination_name="orders.dlq"}`)
	})
	return s
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 30 s: not %s", what)
		}
	}
}
