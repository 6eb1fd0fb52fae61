package redrive_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// The dead-letter topic lost its letters in an unclean election while a run was stopped, or between
// plan and run, and others stand at their offsets. The run sent those, which its operator had never
// seen.
func TestResume_SendsNoLetterAtALostOffset(t *testing.T) { sendsNoLetterAtALostOffset(t, 5) }

func TestRun_SendsNoLetterAtALostOffset(t *testing.T) { sendsNoLetterAtALostOffset(t, 0) }

func sendsNoLetterAtALostOffset(t *testing.T, stoppedAfter int64) {
	t.Helper()
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 20, succeeding)
		// old brokers have no ids of topics, so a topic that is recreated looks like one whose log
		// lost its records
		r := redriver(t, k, kgo.MaxVersions(kversion.V2_7_0()))
		p := plan(t, r)
		if stoppedAfter > 0 {
			stopped(t, r, p, redrive.Pace{Rate: 10, Canary: -1, Ramp: -1}, stoppedAfter)
		}
		time.Sleep(time.Minute)
		s.set(func(ctx context.Context, r *kgo.Record) error {
			if string(r.Value) == "new" {
				return failing("new")(ctx, r)
			}
			return nil
		})
		k.DeleteTopic("orders.dlq")
		k.CreateTopic("orders.dlq", 1)
		// a new leader epoch
		if err := k.Cluster.MoveTopicPartition("orders.dlq", 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, r := range k.Produce(records(30, "new")...) {
			k.DeadLettered(r, "terminal")
		}
		var o redrive.Outcome
		var err error
		if stoppedAfter > 0 {
			o, err = r.Resume(within(t, time.Hour), "orders.dlq", p.ID, ann(redrive.Pace{}, nil))
		} else {
			o, err = r.Run(within(t, time.Hour), p, ann(redrive.Pace{}, nil))
		}
		if c := o.Counts; err != nil || o.State != redrive.Done || c.Sent < stoppedAfter || c.Succeeded != c.Sent || c.Sent+c.Skipped[redrive.SkippedExpired] != 20 {
			t.Errorf("the run ended with %v: %v, %+v", err, o.State, c)
		}
		nothingNew(t, k, r, 30)
	})
}
