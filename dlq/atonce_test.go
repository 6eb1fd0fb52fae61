package dlq

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// One of kgo's options has the clients that are made of it write to what it holds. The race detector fails this.
func TestTheSameOptionsMayBeUsedAtOnce(t *testing.T) {
	t.Parallel()
	onKafka(t, func(t *testing.T, k *kafka) {
		k.fill(t, "orders.dlq", 0, 2)
		opts := k.opts(kgo.ProducerBatchCompression(kgo.SnappyCompression(), kgo.NoCompression()))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				n := 0
				for _, err := range Read(t.Context(), "orders.dlq", Filter{}, Cursor{}, opts...) {
					if err != nil {
						t.Error(err)
					}
					n++
				}
				if n != 2 {
					t.Errorf("read %d letters, want 2", n)
				}
			})
			wg.Go(func() {
				l := NewLedger("orders.dlq", "orders.dlq.ledger", opts...)
				if err := l.Read(t.Context(), nil, nil); err != nil {
					t.Error(err)
				}
				if n, err := l.Discard(t.Context(), Filter{}, Cursor{}, "ann", "test", nil); err != nil || n == 0 {
					t.Errorf("discarded %d, %v", n, err)
				}
			})
		}
		wg.Wait()
	})
}
