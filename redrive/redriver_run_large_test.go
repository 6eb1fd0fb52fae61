package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// The run's record grew with the classes of its letters and of their failures. Beyond a megabyte
// the run could neither end nor be aborted.
func TestRun_EndsWithManyClasses(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		s := &switched{}
		s.set(func(_ context.Context, r *kgo.Record) error {
			return classify.Terminal(classify.As(errors.New("no"), string(r.Value)))
		})
		s.run(k)
		const n = 10_000
		var all []*kgo.Record
		for i := range n {
			all = append(all, &kgo.Record{Topic: "orders", Value: fmt.Appendf(nil, "c%s.%05d", strings.Repeat("x", 110), i)})
		}
		k.DeadLettered(k.Produce(all...)[n-1], "terminal")
		r := redriver(t, k)
		pace := redrive.Pace{Canary: -1, Ramp: -1, Rate: -1, Tolerate: 1 << 30, TolerateShare: 1, MaxLag: -1}
		o, err := r.Run(within(t, 10*time.Minute), plan(t, r), ann(pace, nil))
		if c := o.Counts; err != nil || o.State != redrive.Done || c.Failed != n || len(c.FailedByClass) != 201 || c.FailedByClass["other classes"] != n-200 {
			t.Errorf("it ended with %v: %v, %d failed of %d classes", err, o.State, c.Failed, len(c.FailedByClass))
		}
		// Each of the classes is one of the run's.
		_, err = r.Run(within(t, 10*time.Minute), plan(t, r), ann(redrive.Pace{Canary: -1, Ramp: -1, TolerateShare: 1}, nil))
		if f, ok := errors.AsType[*redrive.FailedAgainError](err); !ok || !strings.Contains(f.Error(), "failed again with cxxx") {
			t.Errorf("it ended with %.300v, want an abort", err)
		}
	})
}

func TestPlan_RefusesWhatTheLedgerCannotHold(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, succeeding)
		_, err := redriver(t, k).Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Edit: redrive.Edit{Value: make([]byte, 500_000), Set: []kgo.RecordHeader{{Key: "big", Value: make([]byte, 150_000)}}}})
		if refused, ok := errors.AsType[*redrive.RefusedError](err); !ok || refused.Reason != redrive.RefusedLarge {
			t.Errorf("it is planned: %v", err)
		}
	})
}

// A run takes itself back for ever while brokers cannot be reached. What they refuse for good is
// no such case.
func TestRun_EndsWhereTheLedgerRefusesItsRecordForGood(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 200, succeeding)
		r, p := planned(t, k)
		refused := false
		_, err := r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{Rate: 20, Ramp: -1}, func(e redrive.Event) {
			if e.Counts.Sent > 20 && !refused {
				refused = true
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.MessageTooLarge, Count: -1})
			}
		}))
		if !errors.Is(err, kerr.MessageTooLarge) {
			t.Errorf("it ended with %v", err)
		}
	})
}
