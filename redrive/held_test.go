package redrive_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// A letter that comes back behind a key's parked head goes on to a retry topic without having run, and the group's offset on the
// target passes it. It counted as one that succeeded, where the target was the source: there it is the first copy, too.
func TestALetterThatWaitsBehindItsKeyIsPendingUntilItHasRun(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"from its retry topic": "", "from its source": "orders"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				var s switched
				letters(t, k, &s, 1)
				cl, err := kgo.NewClient(k.Opts()...)
				if err != nil {
					t.Fatal(err)
				}
				defer cl.Close()
				var due time.Time
				s.set(func(ctx context.Context, r *kgo.Record) error {
					f := consumer.FactsOf(ctx, r)
					if f.RedriveID == "" || !due.IsZero() {
						return nil
					}
					// What HoldKeys does: it goes to the next retry topic in place of running.
					due = time.Now().Add(20 * time.Second)
					m := headers.Meta{
						Original: f.Original, Group: "billing", Held: true, Hops: 2, NotBefore: due,
						Redrive: headers.Redrive{ID: f.RedriveID, Count: 1, From: headers.Position{Topic: "orders.dlq"}},
					}
					if target != "" {
						m.Hops = 1
					}
					return cl.ProduceSync(ctx, &kgo.Record{Topic: "orders.retry.30s", Value: r.Value, Headers: m.Append(nil)}).FirstErr()
				})
				r := redriver(t, k)
				p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: target}})
				if err != nil {
					t.Fatal(err)
				}
				early := ""
				o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1}, func(e redrive.Event) {
					if (due.IsZero() || time.Now().Before(due)) && e.Counts.Succeeded > 0 {
						early = fmt.Sprintf("%+v", e.Counts)
					}
				})
				if err != nil || o.Counts.Succeeded != 1 || early != "" {
					t.Errorf("the run ended with %v, and %+v; before it ran: %q", err, o, early)
				}
				if l, _, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", k.Opts()...).Find(t.Context(), 0, 0); err != nil || l.State != dlq.Succeeded {
					t.Errorf("the letter is %+v, %v", l, err)
				}
			})
		})
	}
}
