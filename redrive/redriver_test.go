package redrive_test

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// The clients of a Redriver are made from the same options, and write to the value of one of kgo's.
// The race detector fails this test.
func TestRedriver_MethodsMayRunConcurrently(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, succeeding)
		r := redriver(t, k, kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()))
		p := plan(t, r)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if _, err := r.Runs(t.Context(), "orders.dlq"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		succeeds(t, 5)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
	})
}
