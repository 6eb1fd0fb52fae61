package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/headers"
)

// DeliveryOf finds the delivery through a context that the handler derived.
func TestDeliveryOf_ADerivedContext(t *testing.T) {
	t.Parallel()
	l := bench(t, time.Minute)
	a := l.attemptNow()
	a.in.from, a.off = l.tiers()[0].origin, 42
	first, due := time.UnixMilli(1000), time.UnixMilli(6000)
	a.in.meta = &headers.Meta{
		Attempts: 2, Group: "billing", FirstFailedAt: first, NotBefore: due, Redrive: headers.Redrive{ID: "r1"},
		Original: headers.Position{Topic: "orders", Partition: 3, Offset: 7},
	}
	child, cancel := context.WithTimeout(context.WithValue(a, ctxKey("x"), 1), time.Hour)
	defer cancel()
	f := DeliveryOf(child, a.rec())
	if f.Attempt != 3 || f.Tier != 5*time.Second || !f.FirstFailedAt.Equal(first) || !f.NotBefore.Equal(due) || f.RedriveID != "r1" {
		t.Errorf("facts are %+v", f)
	}
	if got, want := f.IdempotencyKey(), "billing/orders/3/7"; got != want {
		t.Errorf("idempotency key %q, want %q", got, want)
	}
	if got, want := f.Physical.String(), "orders.retry.5s/3/42"; got != want {
		t.Errorf("physical position %q, want %q", got, want)
	}
}

// With a context of another origin DeliveryOf returns what the record itself has.
func TestDeliveryOf_AForeignContext(t *testing.T) {
	t.Parallel()
	f := DeliveryOf(context.Background(), &kgo.Record{Topic: "orders", Partition: 1, Offset: 9})
	if f.Attempt != 1 || f.Original.String() != "orders/1/9" || f.Physical != f.Original || f.Tier != 0 || f.RedriveID != "" {
		t.Errorf("facts are %+v", f)
	}
}

// When a group was renamed, its name changed in the keys, though the records were the same.
func TestDelivery_IdempotencyKeyKeepsTheOldestName(t *testing.T) {
	t.Parallel()
	l := bench(t, time.Minute)
	l.siblings.DLQ = "orders.dlq"
	l.c.cfg.Group, l.c.cfg.FormerGroups = "payments", []string{"invoices", "billing"}
	run := headers.Meta{Redrive: headers.Redrive{ID: "r1", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 1}}}
	for name, tt := range map[string]struct {
		original headers.Position
		want     string
	}{
		"of the record before it":   {headers.Position{Topic: "orders", Partition: 3, Offset: 2}, "billing/orders/3/2"},
		"of another partition":      {headers.Position{Topic: "orders", Partition: 1, Offset: 900}, "billing/orders/3/7"},
		"of none":                   {headers.Position{}, "billing/orders/3/7"},
		"of the record itself":      {headers.Position{Topic: "orders", Partition: 3, Offset: 7}, "billing/orders/3/7"},
		"of a record still to come": {headers.Position{Topic: "orders", Partition: 3, Offset: 8}, "billing/orders/3/7"},
		"of another topic":          {headers.Position{Topic: "bills", Partition: 3, Offset: 2}, "billing/orders/3/7"},
	} {
		a := l.attemptNow()
		run.Redrive.Original = tt.original
		rec := &kgo.Record{Topic: "orders", Partition: 3, Offset: 7, Headers: run.AppendSource(nil)}
		redriven := l.source.cleanSource(rec)
		a.rareParts().redriven = redriven
		if got := DeliveryOf(a, rec).IdempotencyKey(); got != tt.want {
			t.Errorf("with the place %s: key %s, want %s", name, got, tt.want)
		}
		// A copy in a tier has the headers that were accepted on the source.
		seen := copySource{Source: forward.Source{Offset: 7}, redriven: redriven}
		var meta headers.Meta
		copyLane{l}.meta(&meta, &seen, nil)
		tier := l.attemptNow()
		tier.in.from, tier.in.meta = l.tiers()[0].origin, &meta
		if got := DeliveryOf(tier, rec).IdempotencyKey(); got != tt.want {
			t.Errorf("in a tier, with the place %s: key %s, want %s", name, got, tt.want)
		}
	}
}
