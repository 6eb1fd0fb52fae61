package redrive_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// The copy on the source has another offset, which went into the key. So a handler that had acted
// before it failed acted once more.
func TestCopier_KeepsTheIdempotencyKey(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		sku, busy := errors.New("no such SKU"), classify.Retryable(errors.New("busy"))
		results := []error{
			sku,       // on the source
			busy, sku, // on the source again, in its tier
			sku, // redriven to the tier
			nil, // and to the source once more
		}
		var mu sync.Mutex
		var keys []string
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				if string(r.Value) != "x" {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				keys = append(keys, consumer.DeliveryOf(ctx, r).IdempotencyKey())
				return results[len(keys)-1]
			},
		})
		records := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("before")}, &kgo.Record{Topic: "orders", Value: []byte("x")}, &kgo.Record{Topic: "orders", Value: []byte("behind")})
		k.DeadLettered(records[1], headers.ReasonTerminal)
		r := redriver(t, k)
		for i, target := range []string{"orders", "", "orders"} {
			p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: target}})
			if err != nil || p.Letters != 1 {
				t.Fatalf("run %d: %+v, %v", i+1, p, err)
			}
			if o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Tolerate: 10, Window: time.Minute}, nil)); err != nil || o.Counts.Sent != 1 {
				t.Fatalf("run %d: %+v, %v", i+1, o, err)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(keys) != len(results) {
			t.Errorf("%d deliveries, want %d", len(keys), len(results))
		}
		for i, key := range keys {
			if want := "billing/orders/0/1"; key != want {
				t.Errorf("delivery %d has the key %s, want %s", i+1, key, want)
			}
		}
	})
}

// A letter of the former topic was redriven with its position there, which is another record's in
// the new topic. A handler that had acted on that record took the letter for done.
func TestCopier_KeepsKeysApartOnARecreatedSource(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		var mu sync.Mutex
		values := map[string]string{} // of the records that succeeded, by key
		fixed := false
		k.Run(consumer.Config{
			Group: "billing", Topics: []string{"orders"}, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}},
			Handler: func(ctx context.Context, r *kgo.Record) error {
				mu.Lock()
				defer mu.Unlock()
				if string(r.Value) == "former" && !fixed {
					return errors.New("no such SKU")
				}
				key := consumer.DeliveryOf(ctx, r).IdempotencyKey()
				if other, ok := values[key]; ok {
					t.Errorf("%q has the key %s of %q", r.Value, key, other)
				}
				values[key] = string(r.Value)
				return nil
			},
		})
		former := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("before")}, &kgo.Record{Topic: "orders", Value: []byte("former")})
		k.DeadLettered(former[1], headers.ReasonTerminal)
		mu.Lock()
		clear(values) // they are of a topic that is gone
		fixed = true
		mu.Unlock()
		k.DeleteTopic("orders")
		time.Sleep(time.Minute)
		k.CreateTopic("orders", 1)
		k.Produce(&kgo.Record{Topic: "orders", Value: []byte("0")}, &kgo.Record{Topic: "orders", Value: []byte("1")}, &kgo.Record{Topic: "orders", Value: []byte("2")})
		time.Sleep(time.Minute)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		succeeds(t, 1)(r.Run(t.Context(), p, ann(redrive.Pace{Ramp: -1, Window: 2 * time.Second}, nil)))
		mu.Lock()
		defer mu.Unlock()
		if len(values) != 4 || values["billing/orders/0/3"] != "former" {
			t.Errorf("the keys are %v", values)
		}
	})
}
