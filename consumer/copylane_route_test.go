package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
)

// docs/adopting.md says how to stop using siding: set MaxAttempts to 1 and keep Tiers. Then no more
// records are parked, parked records still run when they are due, and the retry topics run empty.
func TestLane_OneAttemptRunsTheTiersEmpty(t *testing.T) {
	onOrders(t, 1, func(t *testing.T, k *consumertest.Kafka) {
		cfg := consumer.Config{
			Group: "billing", Topics: []string{"orders"},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) == "mended" && consumer.DeliveryOf(ctx, r).Attempt == 2 {
					return nil
				}
				return classify.Retryable(errBusy)
			},
		}
		before := k.Run(cfg)
		parked := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("mended")}, &kgo.Record{Topic: "orders", Value: []byte("broken")})
		for _, r := range parked {
			k.Parked(r, 5*time.Second, "")
		}
		stop(t, before)

		cfg.Policy.MaxAttempts = 1
		after := k.Run(cfg)
		late := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("broken")})[0]
		if letter := k.DeadLettered(late, headers.ReasonExhausted); letter.Attempts != 1 {
			t.Errorf("what came later was tried %d times, want once", letter.Attempts)
		}
		k.Handled(parked[0], 1)
		if letter := k.DeadLettered(parked[1], headers.ReasonExhausted); letter.Attempts != 2 {
			t.Errorf("what was parked was tried %d times, want twice", letter.Attempts)
		}
		stop(t, after)
		k.Conserved()

		lag, err := kadm.NewClient(client(t, k)).Lag(t.Context(), "billing")
		if err != nil || lag.Error() != nil {
			t.Fatal(err, lag.Error())
		}
		for topic, n := range lag["billing"].Lag.TotalByTopic() {
			if n.Lag != 0 {
				t.Errorf("%s has a lag of %d", topic, n.Lag)
			}
		}
	})
}

// A tool copied dead letters back to the source with all headers, the mark of an earlier redrive
// among them. MaxAge counted from that redrive, or from the first failure before it, so each record
// was a dead letter again at the first fault, without a retry. A made-up time in the future
// switched MaxAge off.
func TestLane_HeadersOnASourceCannotSetTheAge(t *testing.T) {
	mark := headers.Redrive{ID: "run-1", Count: 1, From: headers.Position{Topic: "orders.dlq", Offset: 5}}
	redriven := func(at time.Time) []kgo.RecordHeader {
		m := headers.Meta{Redrive: mark, FirstFailedAt: time.UnixMilli(1)}
		m.Redrive.At = at
		return m.AppendSource(nil)
	}
	firstFailed := kgo.RecordHeader{Key: headers.FirstFailedAt, Value: []byte("1")}
	each(t, map[string]func(now time.Time) *kgo.Record{
		"first failed long ago": func(time.Time) *kgo.Record {
			return &kgo.Record{Headers: []kgo.RecordHeader{firstFailed}}
		},
		"first failed long ago, redriven at no time": func(time.Time) *kgo.Record {
			return &kgo.Record{Headers: append(redriven(time.Time{}), firstFailed)}
		},
		"redriven long ago": func(time.Time) *kgo.Record {
			return &kgo.Record{Headers: redriven(time.UnixMilli(1))}
		},
		"redriven in the future": func(now time.Time) *kgo.Record {
			return &kgo.Record{Headers: redriven(now.AddDate(1, 0, 0))}
		},
		"a letter with all its headers, of a run that bounded its attempts": func(now time.Time) *kgo.Record {
			m := headers.Meta{
				Original: headers.Position{Topic: "orders", Offset: 3}, Group: "billing", Attempts: 1, Class: "busy", Reason: headers.ReasonExhausted,
				FirstFailedAt: now.AddDate(0, -1, 0), FailedAt: now.AddDate(0, -1, 0), Hops: 1, Redrive: mark,
			}
			m.Redrive.MaxAttempts = 1
			return &kgo.Record{Headers: m.Append(nil)}
		},
		"redriven and written in the future": func(now time.Time) *kgo.Record {
			return &kgo.Record{Headers: redriven(now.AddDate(1, 0, 0)), Timestamp: now.AddDate(1, 0, 0)}
		},
		"redriven now, and its timestamp kept": func(now time.Time) *kgo.Record {
			return &kgo.Record{Headers: redriven(now), Timestamp: now.AddDate(0, -1, 0)}
		},
	}, 1, func(t *testing.T, k *consumertest.Kafka, record func(time.Time) *kgo.Record) {
		cfg := config(func(context.Context, *kgo.Record) error { return classify.Retryable(errBusy) })
		cfg.Policy = consumer.Policy{
			Tiers: []time.Duration{20 * time.Minute}, Jitter: -1, MaxAttempts: 100, MaxAge: 50 * time.Minute,
		}
		k.Run(cfg)
		r := record(time.Now())
		r.Topic = "orders"
		letter := k.DeadLettered(k.Produce(r)[0], headers.ReasonExpired)
		if letter.Attempts != 4 {
			t.Errorf("it was tried %d times in 50 minutes, want 4: each 20 minutes", letter.Attempts)
		}
	})
}
