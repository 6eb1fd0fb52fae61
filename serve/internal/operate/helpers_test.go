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
	"github.com/sidingkafka/siding/serve/internal/watch"
)

// deskOver returns a desk of a server that has read orders.dlq with so many letters, and a context
// of its work.
func deskOver(t *testing.T, k *consumertest.Kafka, letters int) (context.Context, *Desk, *watch.Topic) {
	t.Helper()
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
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		cluster.End()
	})
	cluster.Round(ctx, &running)
	running.Wait()
	return ctx, New(Config{Kafka: k.Opts(), Cluster: cluster, Redriver: r, Log: log}), cluster.Topic("orders.dlq")
}
