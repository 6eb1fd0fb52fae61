package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

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
	firstFailed := kgo.RecordHeader{Key: reserved.FirstFailedAt.String(), Value: []byte("1")}
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
