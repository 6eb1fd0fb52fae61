package serve_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/client"
	"github.com/sidingkafka/siding/serve/internal/letterstest"
)

// TestMain lets more tests run side by side than there are processors: many wait for servers in
// real time. With the race detector they compute more than they wait.
func TestMain(m *testing.M) {
	if flag.Parse(); !cases.Few {
		_ = flag.Set("test.parallel", "8")
	}
	os.Exit(m.Run())
}

// cluster is an embedded broker with dead-letter topics.
type cluster struct {
	letterstest.Broker
	fake *kfake.Cluster
	n    int64
	log  lines // of its servers
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

// fail writes n letters of a source.
func (c *cluster) fail(source, class string, n int) {
	c.T.Helper()
	for range n {
		c.n++
		now := time.Now()
		bury(c.T, c.Client, &kgo.Record{Topic: source, Partition: int32(c.n % 3), Offset: c.n, Value: []byte("v")}, headers.Meta{
			Original: headers.Position{Topic: source, TopicID: [16]byte{1}, Partition: int32(c.n % 3), Offset: c.n}, Group: "billing", Attempts: 1, Class: class,
			Message: "it failed", Environment: "staging", Host: "orders-7", Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now,
		})
	}
}

// write writes a letter of a record, whose position it sets.
func (c *cluster) write(source, class string, r *kgo.Record) {
	c.T.Helper()
	c.n++
	r.Topic, r.Partition, r.Offset = source, int32(c.n%3), c.n
	now := time.Now()
	bury(c.T, c.Client, r, headers.Meta{
		Original: headers.Position{Topic: source, Partition: r.Partition, Offset: r.Offset}, Group: "billing", Attempts: int(c.n), Class: class,
		Message: "it failed", Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now,
	})
}

// serve runs a server that answers over HTTP, and returns a client without credentials.
func (c *cluster) serve(cfg serve.Config) (cl *client.Client, stop func()) {
	c.T.Helper()
	s, end := c.run(cfg)
	return c.clientOf(s, ""), end
}

// clientOf returns a client of a server that sends a token. Reading a request is limited to a
// second, as a server limits it, so that a test sees what lasts longer.
func (c *cluster) clientOf(s *serve.Server, token string) *client.Client {
	c.T.Helper()
	h := httptest.NewUnstartedServer(s.Handler())
	h.Config.ReadTimeout = time.Second
	// Without it a connection at rest may close while the next request is sent.
	h.Config.IdleTimeout = time.Minute
	h.Start()
	c.T.Cleanup(h.Close)
	cl, err := client.New(h.URL, token, h.Client())
	if err != nil {
		c.T.Fatal(err)
	}
	return cl
}

// opens waits until a topic has so many open letters.
func opens(t *testing.T, cl *client.Client, topic string, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d letters of %s are open", n, topic), func() bool {
		is, err := cl.Topic(t.Context(), topic)
		return err == nil && is.Known != nil && is.Open == n
	})
}

// run runs a server until the test ends, or until stop is called.
func (c *cluster) run(cfg serve.Config) (s *serve.Server, stop func()) {
	c.T.Helper()
	cfg.Kafka, cfg.Refresh = c.Opts, 500*time.Millisecond
	s, err := serve.New(cfg, slog.New(slog.NewTextHandler(io.MultiWriter(c.T.Output(), &c.log), nil)))
	if err != nil {
		c.T.Fatal(err)
	}
	return s, runUntil(c.T, s)
}

// handlers has the handlers of the servers that run.
var handlers sync.Map

// handlerOf returns the handler of a server. To make one takes ten times as long as an answer.
func handlerOf(s *serve.Server) http.Handler {
	if h, ok := handlers.Load(s); ok {
		return h.(func() http.Handler)()
	}
	return s.Handler()
}

// runUntil runs a server until the test ends, or until stop is called.
func runUntil(t *testing.T, s *serve.Server) (stop func()) {
	handlers.Store(s, sync.OnceValue(s.Handler))
	t.Cleanup(func() { handlers.Delete(s) })
	return beside(t, s.Run)
}

// beside calls run beside the test, until the test ends, or until stop is called.
func beside(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it returned %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// get returns what a path of a server answers.
func get(t *testing.T, s *serve.Server, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5000"
	handlerOf(s).ServeHTTP(w, r)
	return w.Body.String()
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

// shows waits until /metrics has a line.
func shows(t *testing.T, s *serve.Server, line string) {
	t.Helper()
	var last string
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	eventually(t, line, func() bool {
		last = get(t, s, "/metrics")
		return strings.Contains(last, line+"\n")
	})
}

func TestServer_MetricsCountLetters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	s, _ := c.run(serve.Config{})
	// Letters that are there before the first read do not count as written.
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 0`)
	c.fail("orders", "tax.TableMiss", 7)
	c.fail("orders", "decode", 2)
	shows(t, s, `siding_dead_letters_open{error_type="tax.TableMiss",messaging_destination_name="orders.dlq"} 7`)
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 2`)
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="orders.dlq"} 2`)
	shows(t, s, `siding_dead_letters_new_classes{messaging_destination_name="bills.dlq"} 0`)
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", c.Opts...)
	if _, err := l.Discard(t.Context(), dlq.Filter{Classes: []string{"decode"}}, dlq.Cursor{}, dlq.DiscardOptions{By: "ada", Why: "test"}); err != nil {
		t.Fatal(err)
	}
	shows(t, s, `siding_dead_letters_open{error_type="decode",messaging_destination_name="orders.dlq"} 0`)
	shows(t, s, `siding_dead_letters_resolved{messaging_destination_name="orders.dlq",siding_letter_state="discarded"} 2`)
	shows(t, s, `siding_dead_letters_written_total{error_type="decode",messaging_destination_name="orders.dlq"} 2`)
}

// hook is a receiver of notifications.
type hook struct {
	*httptest.Server
	got chan string
}

func newHook(t *testing.T) *hook {
	h := &hook{got: make(chan string, 100)}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var m struct{ Title, Message string }
		if err := json.Unmarshal(text, &m); err != nil {
			m.Message = string(text)
		}
		h.got <- m.Title + "|" + m.Message
	}))
	t.Cleanup(h.Close)
	return h
}

// reader returns a client that reads a topic from its beginning.
func (c *cluster) reader(topic string) *kgo.Client {
	c.T.Helper()
	cl, err := kgo.NewClient(append(c.Opts, kgo.ConsumeTopics(topic))...)
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(cl.Close)
	return cl
}
