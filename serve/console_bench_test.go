package serve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/serve"
)

// The first page of a topic with a million letters, 50 rows, takes at most 150 ms of the server,
// p95. Each request has a filter of its own, so that none is answered with a page that was rendered
// before. LETTERS sets another number of letters.
//
//	go test -run '^$' -bench Console_FirstPage -benchtime 200x .
func BenchmarkConsole_FirstPage(b *testing.B) {
	letters := 1_000_000
	if text := os.Getenv("LETTERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		letters = n
	}
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(6, "orders", "orders.dlq"), kfake.SeedTopics(6, "orders.dlq.ledger"))
	if err != nil {
		b.Fatal(err)
	}
	defer fake.Close()
	opts := []kgo.Opt{kgo.SeedBrokers(fake.ListenAddrs()...)}
	writeLetters(b, letters, opts)
	s, err := serve.New(serve.Config{Kafka: opts}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}()
	h := s.Handler()
	ask := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	known := fmt.Sprintf(`"open":%d,`, letters)
	for end := time.Now().Add(10 * time.Minute); !strings.Contains(ask("/api/v1/topics").Body.String(), known); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatal("the topic is not read")
		}
	}
	for name, query := range map[string]string{"all": "", "class": "class=class-3&"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				w := ask(fmt.Sprintf("/topics/orders.dlq?%suntil=%s", query, time.Unix(4e9+int64(len(took)), 0).UTC().Format(time.RFC3339)))
				took = append(took, time.Since(began))
				if n := strings.Count(w.Body.String(), `id="letter-`); w.Code != http.StatusOK || n != min(50, letters) {
					b.Fatalf("%d with %d letters", w.Code, n)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// writeLetters writes letters of 20 classes, over the last three days.
func writeLetters(b *testing.B, n int, opts []kgo.Opt) {
	b.Helper()
	cl, err := kgo.NewClient(append(slices.Clone(opts), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(50_000))...)
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	w := dlq.NewWriter(cl, "orders.dlq")
	var mu sync.Mutex
	var failed error
	begin := time.Now().Add(-72 * time.Hour)
	for i := range n {
		at := begin.Add(time.Duration(i) * 72 * time.Hour / time.Duration(n))
		class := fmt.Sprintf("class-%d", i%20)
		w.Write(b.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 6), Offset: int64(i), Value: []byte("v")}, headers.Meta{
			Original: headers.Position{Topic: "orders", Partition: int32(i % 6), Offset: int64(i)}, Group: "billing", Version: fmt.Sprint("2.3.", i%3), Attempts: 1, Class: class,
			Fingerprint: "f-" + class, Message: "no rate for region", Reason: headers.ReasonTerminal, FirstFailedAt: at, FailedAt: at,
		}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	if err := cl.Flush(b.Context()); err != nil || failed != nil {
		b.Fatal(err, failed)
	}
}
