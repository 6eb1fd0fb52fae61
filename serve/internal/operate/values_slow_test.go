package operate

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve/internal/selection"
	"github.com/sidingkafka/siding/serve/where"
)

// Whoever counts by a field waits some seconds at most, and learns that not all letters are
// counted.
func TestReadValues_EndsInTimeAndSaysSo(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters, each = 60, 260 * time.Millisecond
		ctx, d, top := deskOver(t, k, letters)
		field, err := where.ParseField("header:tenant")
		if err != nil {
			t.Fatal(err)
		}
		slow := &selection.Selection{Reads: func(*dlq.Letter) bool {
			time.Sleep(each)
			return true
		}}
		began := time.Now()
		v, err := readValues(ctx, d, top, slow, field, false)
		if took := time.Since(began); err != nil || v.Complete || v.Counted == 0 || v.Counted >= letters || took > longestRead+2*each {
			t.Errorf("after %v: %+v, %v", took, v, err)
		}
		if v, err := readValues(ctx, d, top, &selection.Selection{}, field, false); err != nil || !v.Complete || v.Counted != letters || v.Without != letters {
			t.Errorf("without a filter: %+v, %v", v, err)
		}
	})
}
