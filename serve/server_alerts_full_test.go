package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve/internal/notify"
)

// refusals is a log that passes on when a receiver had no room.
type refusals struct {
	slog.Handler
	came chan struct{}
}

func (r refusals) Handle(ctx context.Context, line slog.Record) error {
	if strings.Contains(line.Message, "waits for room") {
		r.came <- struct{}{}
	}
	return r.Handler.Handle(ctx, line)
}

// A receiver with as many messages as it has room for is down, and an incident begins. When there
// is room again, the server notifies of it by itself.
func TestServer_TellsWhenThereIsRoomAgain(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.dlq", "orders.dlq.ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	opts := []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}
	cl, err := kgo.NewClient(append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	written := make(chan error, 1)
	dlq.NewWriter(cl, "orders.dlq").Write(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}, headers.Meta{
		Original: headers.Position{Topic: "orders"}, Group: "billing", Attempts: 1, Class: "http.503", Reason: headers.ReasonTerminal, FirstFailedAt: time.Now(), FailedAt: time.Now(),
	}, func(err error) { written <- err })
	if err := <-written; err != nil {
		t.Fatal(err)
	}

	tried, down, delivered := make(chan struct{}, 2000), make(chan struct{}), make(chan struct{}, 10)
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tried <- struct{}{}
		<-down
		if text, _ := io.ReadAll(r.Body); strings.Contains(string(text), "orders.dlq") {
			delivered <- struct{}{}
		}
	}))
	t.Cleanup(h.Close)
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("generic+"+h.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	log := refusals{slog.NewTextHandler(t.Output(), nil), make(chan struct{}, 10)}
	s, err := New(Config{
		Kafka: opts, Refresh: time.Second, Notify: []Receiver{{Name: "pager", URLFile: file}},
		Topics: []Topic{{Match: "*", Alerts: Thresholds{WarnOpen: 1, PageOpen: -1, New: -1, Oldest: -1, NewClass: -1, Retention: -1}}},
	}, slog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	for s.receivers[0].Send(notify.Message{Title: "earlier", Done: func(error) {}}) {
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	<-tried // the first message is out of the queue, and makes room
	for s.receivers[0].Send(notify.Message{Title: "earlier", Done: func(error) {}}) {
	}
	<-log.came
	close(down)
	select {
	case <-delivered:
	case <-time.After(30 * time.Second):
		t.Fatal("no message came")
	}
}
