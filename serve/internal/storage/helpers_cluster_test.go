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
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/archive"
)

// cluster is an embedded broker with dead-letter topics.
type cluster struct {
	t     *testing.T
	addrs []string
	opts  []kgo.Opt
	cl    *kgo.Client
}

func newCluster(t *testing.T, sources ...string) *cluster {
	t.Helper()
	var topics []string
	for _, s := range sources {
		topics = append(topics, s, s+".dlq", s+".dlq.ledger")
	}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c := &cluster{t: t, addrs: fake.ListenAddrs(), opts: []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}}
	if c.cl, err = kgo.NewClient(append(c.opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.cl.Close)
	return c
}

// run runs a server until the test ends.
func (c *cluster) run(cfg serve.Config) *serve.Server {
	c.t.Helper()
	cfg.Kafka, cfg.Refresh = c.opts, 500*time.Millisecond
	s, err := serve.New(cfg, slog.New(slog.NewTextHandler(c.t.Output(), nil)))
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			c.t.Errorf("Run returned %v", err)
		}
	})
	c.t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// watched runs a server until it has judged the topic orders.dlq.
func (c *cluster) watched(cfg serve.Config) *serve.Server {
	c.t.Helper()
	s := c.run(cfg)
	h := s.Handler()
	eventually(c.t, "the topic is judged", func() bool {
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

// held returns how many letters are in a dead-letter topic.
func (c *cluster) held(topic string) (n int) {
	c.t.Helper()
	for _, err := range dlq.Read(c.t.Context(), topic, dlq.Filter{}, dlq.Cursor{}, c.opts...) {
		if err != nil {
			c.t.Fatal(err)
		}
		n++
	}
	return n
}

// discard discards all letters of a topic.
func (c *cluster) discard(topic string) {
	c.t.Helper()
	l := dlq.NewLedger(topic, topic+".ledger", c.opts...)
	if _, err := l.Discard(c.t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		c.t.Fatal(err)
	}
}

// old writes letters to the first partition that are as old as that.
func (c *cluster) old(topic string, ages ...time.Duration) {
	c.t.Helper()
	for _, age := range ages {
		r := &kgo.Record{Topic: topic, Timestamp: time.Now().Add(-age), Headers: []kgo.RecordHeader{{Key: headers.FailureReason, Value: []byte(headers.ReasonTerminal)}}}
		if err := c.cl.ProduceSync(c.t.Context(), r).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) pruned(topic string) []ledgerrecord.Prune {
	c.t.Helper()
	all := ledgerrecord.Prunes{}
	err := dlq.NewLedger(topic, topic+".ledger", c.opts...).Read(c.t.Context(), nil, func(n *dlq.LedgerRecord) {
		if _, err := all.Add(n.Run, n.Record.Value); err != nil {
			c.t.Error(err)
		}
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return all.Sorted()
}

// imports imports an archive, and returns the number of its letters.
func (c *cluster) imports(topic, location string, s archive.S3) int64 {
	c.t.Helper()
	r, err := archive.Open(c.t.Context(), location, s)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	n, err := dlq.Import(c.t.Context(), topic, r, dlq.ImportOptions{}, c.opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
