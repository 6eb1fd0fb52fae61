package consumer

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/costs"
)

// A healthy record costs little more than its attempt, a failed one little more than its copy. Not
// parallel: it counts the allocations of the process.
func TestLane_CostsNoMoreThanItsCeilings(t *testing.T) {
	costs.Hold(t, BenchmarkLane_OrderPartition, BenchmarkLane_OrderKey, BenchmarkLane_OrderNone, BenchmarkLane_HoldKeys, BenchmarkLane_ToTier, BenchmarkLane_ToDeadLetters)
}

func BenchmarkLane_OrderPartition(b *testing.B) { benchmarkLane(b, OrderPartition, nil) }
func BenchmarkLane_OrderKey(b *testing.B)       { benchmarkLane(b, OrderKey, nil) }
func BenchmarkLane_OrderNone(b *testing.B)      { benchmarkLane(b, OrderNone, nil) }

// Nothing is held.
func BenchmarkLane_HoldKeys(b *testing.B) {
	benchmarkLane(b, OrderPartition, nil, func(cfg *Config) { cfg.HoldKeys = true })
}

func BenchmarkLane_ToTier(b *testing.B) {
	benchmarkLane(b, OrderPartition, classify.Retryable(errors.New("tax service is busy")))
}

func BenchmarkLane_ToDeadLetters(b *testing.B) {
	benchmarkLane(b, OrderPartition, classify.Terminal(errors.New("unknown SKU")))
}

// benchmarkLane runs records of a lane with one worker, from the poll to the end of the last copy.
func benchmarkLane(b *testing.B, order Order, failure error, edits ...func(*Config)) {
	const (
		polled = 2 * unitRecords
		warm   = 64 // with the copies that a new lane must have written before it may send many
		keys   = 100
	)
	cfg := Config{Order: order, Concurrency: 1, Logger: slog.New(slog.DiscardHandler), Policy: Policy{Breaker: Breaker{Off: true}}}
	for _, edit := range edits {
		edit(&cfg)
	}
	c := idle(b, cfg, func() {})
	c.cfg.Handler = func(context.Context, *kgo.Record) error { return failure }
	siblings := c.siblings["orders"]
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, siblings.DLQ, siblings.Tiers[0].Topic))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cluster.Close)
	writeWith(c, func() (*kgo.Client, error) {
		return kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.MetadataMinAge(10*time.Millisecond), kgo.DisableClientMetrics())
	})
	l := held(c, 0, "m")
	recs := make([]*kgo.Record, warm+b.N)
	for i := range recs {
		recs[i] = &kgo.Record{Topic: "orders", Offset: int64(i), Key: strconv.AppendInt(nil, int64(i%keys), 10), Value: make([]byte, 200)}
	}
	run := func(some []*kgo.Record) {
		l.source.takePolled(some, int64(len(recs)))
		for !l.rests() {
			<-l.changed
		}
	}
	run(recs[:warm])
	b.ReportAllocs()
	b.ResetTimer()
	for i := warm; i < len(recs); i += polled {
		run(recs[i:min(i+polled, len(recs))])
	}
	b.StopTimer()
	if next := l.source.tracker.Commit().Floor; next != int64(len(recs)) {
		b.Fatalf("the lane is at %d, want %d", next, len(recs))
	}
}

// rests reports whether no record waits, runs or is in flight.
func (l *lane) rests() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.queued == 0 && len(l.units) == 0 && l.copies.Outstanding() == 0
}
