package redrive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// Users' tests may redrive records, and check conservation as ever.
func TestRun_ConservesRecords(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]redrive.Target{"to a retry topic": {}, "to the source": {Topic: "orders"}} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := letters(t, k, 40, nil)
			k.Conserved()
			s.set(func(_ context.Context, r *kgo.Record) error {
				switch r.Offset % 4 {
				case 0:
					return classify.Terminal(classify.As(errors.New("no"), "tax"))
				case 1:
					return classify.RetryAfter(errors.New("busy"), time.Hour)
				}
				return nil
			})
			r := redriver(t, k)
			for range 2 { // what fails comes back once more
				p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: target})
				if o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Tolerate: 1000}, nil)); err != nil || o.Counts.Sent != p.Letters {
					t.Fatalf("the run ended with %v, and %+v", err, o)
				}
				k.Conserved()
			}
		})
	}
}
