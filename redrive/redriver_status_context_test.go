package redrive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// A request over HTTP asks for a run whose topics have no leader, and must end in its time.
func TestStatus_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]kfake.Fault{
		"fetches":       {Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.NotLeaderForPartition},
		"offsets":       {Keys: []kmsg.Key{kmsg.ListOffsets}, Err: kerr.NotLeaderForPartition},
		"group offsets": {Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				letters(t, k, 20, blocked)
				r, p := planned(t, k)
				left := stopped(t, r, p, redrive.Pace{Rate: 2, Canary: -1, Ramp: -1, Window: time.Second}, 2)
				f.Count = -1
				k.Cluster.Fault(f)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				_, err := r.Status(ctx, "orders.dlq", left.ID)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 12*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}
