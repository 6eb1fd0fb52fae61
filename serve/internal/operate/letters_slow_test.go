package operate

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// An expression that takes 260 ms for each letter took 52 s for one page: time was looked at after
// each batch alone. Pages come in time now, and together have each letter once. A request that ends
// ends the work.
func TestDesk_PageOfSlowLettersComesInTime(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters, each = 60, 260 * time.Millisecond
		for _, name := range []string{"orders", "orders.dlq", "orders.dlq.ledger"} {
			k.CreateTopic(name, 2)
		}
		cl, err := kgo.NewClient(append(k.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		w, written := dlq.NewWriter(cl, "orders.dlq"), make(chan error, letters)
		for i := range letters {
			r := &kgo.Record{Topic: "orders", Partition: int32(i % 2), Offset: int64(i), Value: []byte("v")}
			now := time.Now()
			w.Write(t.Context(), r, headers.Meta{
				Original: headers.Position{Topic: "orders", Partition: r.Partition, Offset: r.Offset}, Group: "billing", Attempts: 1, Class: "http.503",
				Reason: headers.ReasonTerminal, FirstFailedAt: now, FailedAt: now,
			}, func(err error) { written <- err })
		}
		for range letters {
			if err := <-written; err != nil {
				t.Fatal(err)
			}
		}
		log := slog.New(slog.DiscardHandler)
		r, err := redrive.New(redrive.Config{Kafka: k.Opts(), Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		cluster := watch.New(watch.Config{Kafka: k.Opts(), Group: "siding-serve", Refresh: 2 * time.Second, Redriver: r, Settings: func(string) watch.Settings { return watch.Settings{} }, Log: log})
		if err := cluster.Begin(); err != nil {
			t.Fatal(err)
		}
		defer cluster.End()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		cluster.Round(ctx, &running)
		running.Wait()
		d := New(Config{Kafka: k.Opts(), Cluster: cluster, Redriver: r, Log: log})
		top, seen := cluster.Topic("orders.dlq"), 0
		sel := &selection.Selection{Reads: func(*dlq.Letter) bool {
			time.Sleep(each)
			return true
		}}
		places := map[[2]int64]bool{}
		for before := (dlq.Cursor{}); ; {
			began := time.Now()
			page, err := readPage(ctx, d, top, sel, false, before, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > longestRead+longestRead/2 || page.Examined == 0 {
				t.Errorf("a page of %d letters takes %v", page.Examined, took)
			}
			for _, l := range page.Letters {
				places[[2]int64{int64(l.Partition), l.Offset}] = true
			}
			if seen += len(page.Letters); page.Next == "" {
				break
			}
			if before, err = dlq.ParseCursor(page.Next); err != nil {
				t.Fatal(err)
			}
		}
		if seen != letters || len(places) != letters {
			t.Errorf("the pages have %d letters, %d of them once, want %d", seen, len(places), letters)
		}
		began := time.Now()
		short, end := context.WithTimeout(ctx, time.Second)
		defer end()
		if _, err := readPage(short, d, top, sel, false, dlq.Cursor{}, 1000); err == nil || time.Since(began) > time.Second+2*each {
			t.Errorf("a request of a second ends after %v with %v", time.Since(began), err)
		}
	})
}
