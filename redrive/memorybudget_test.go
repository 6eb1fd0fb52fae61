package redrive_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// fetched counts the bytes in memory of the batches that were read from a topic.
type fetched struct {
	topic string
	bytes atomic.Int64
}

func (f *fetched) OnFetchBatchRead(_ kgo.BrokerMetadata, topic string, _ int32, m kgo.FetchBatchMetrics) {
	if topic == f.topic {
		f.bytes.Add(int64(m.UncompressedBytes))
	}
}

// Letters were read ahead by their number: with 900 KB each, some 1.5 GB.
func TestMemoryBudget_FewLargeLettersAreInMemory(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	const size = 900_000
	for most, n := range map[int64]int{0: 90, 4 << 20: 20} {
		virtual(t, fmt.Sprint(most), func(t *testing.T, k *consumertest.Kafka) {
			s := large(t, k, n, size)
			canary := time.Second // in which as much is read as may be
			s.set(func(context.Context, *kgo.Record) error {
				time.Sleep(canary)
				canary = 0
				return nil
			})
			count := &fetched{topic: "orders.dlq"}
			r := redriverOf(t, redrive.Config{Kafka: append(k.Opts(), kgo.WithHooks(count), kgo.FetchMaxBytes(1)), MaxBufferedBytes: most})
			p := plan(t, r)
			count.bytes.Store(0)
			var held int64
			succeeds(t, int64(n)+1)(r.Run(t.Context(), p, ann(redrive.Pace{Rate: 20, Burst: 2, Ramp: -1}, func(e redrive.Event) {
				held = max(held, count.bytes.Load()-e.Counts.Sent*size)
			})))
			limit := most
			if limit == 0 {
				limit = 64 << 20
			}
			// Beside these there are an answer of the broker, a letter that is too many, and what
			// was sent since the last event.
			if over := held - limit; over > 8*size {
				t.Errorf("%d bytes were in memory, want %d", held, limit)
			}
			if held < limit/2 {
				t.Errorf("%d bytes were in memory at most: nothing is read ahead", held)
			}
		})
	}
}

func TestMemoryBudget_MustNotBeNegative(t *testing.T) {
	t.Parallel()
	if _, err := redrive.New(redrive.Config{MaxBufferedBytes: -1}); err == nil {
		t.Error("it is taken")
	}
}
