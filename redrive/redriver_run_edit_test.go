package redrive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

func TestRun_EditsRecords(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		var s switched
		s.set(failing("tax"))
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle})
		for _, value := range []string{`{"a":1,"b":2}`, `no JSON`} {
			h := []kgo.RecordHeader{{Key: "x", Value: []byte("1")}, {Key: "y", Value: []byte("2")}, {Key: "x", Value: []byte("3")}}
			k.DeadLettered(k.Produce(&kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte(value), Headers: h})[0], "terminal")
		}
		var got received
		s.set(got.take)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Edit: redrive.Edit{
			Set: []kgo.RecordHeader{{Key: "z", Value: []byte("9")}}, Unset: []string{"x"}, Patch: []byte(`{"b":3}`),
		}})
		if p.Letters != 1 || p.Skipped[redrive.SkippedEdit] != 1 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "1 letter stays: the edit can't be applied to the value; the first error: letter orders.dlq/0/1: patch: ") {
			t.Errorf("the plan is %+v", p)
		}
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 1)}}, Edit: redrive.Edit{Patch: []byte(`{}`)}})
		refused(t, err, redrive.RefusedEdit, "letter orders.dlq/0/1: patch: ")
		succeeds(t, 1)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		if len(got.all) != 1 || string(got.all[0].Value) != `{"a":1,"b":3}` || fmt.Sprint(got.all[0].Headers) != "[{y [50]} {z [57]}]" {
			t.Errorf("the handler got %v", got.all)
		}
		_, notes, err := ledgerOf(k).Find(t.Context(), 0, 0)
		if err != nil || len(notes) == 0 {
			t.Fatal(notes, err)
		}
		if e := notes[0].Entry; e.State != dlq.Redriven || !slices.Equal(e.Edited, []string{"headers", "value"}) || e.By != "ann" || e.Why != "JIRA-1" || e.Run != p.ID {
			t.Errorf("the ledger says %+v", e)
		}
	})
}

// Trap 22: a dead letter goes back to the source, and groups that had handled it get it again.
func TestRun_RedrivesToTheFailingGroupOnly(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 2)
		var billing switched
		billing.set(failing("tax"))
		var others [2]received
		k.Run(consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: billing.handle, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}}})
		k.Run(consumer.Config{Group: "audit", Topics: []string{"orders"}, Handler: others[0].take, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second}}})
		k.Run(consumer.Config{Group: "stock", Topics: []string{"orders"}, Handler: others[1].take, Policy: consumer.Policy{Tiers: []time.Duration{time.Minute}}})
		allDeadLettered(k, k.Produce(records(50, "x")...))
		var got received
		billing.set(got.take)
		r, p := planned(t, k)
		if !slices.Equal(p.SeenBy, []string{"billing"}) {
			t.Errorf("the plan says that %v see it", p.SeenBy)
		}
		succeeds(t, 50)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		if len(got.all) != 50 || len(others[0].all) != 50 || len(others[1].all) != 50 {
			t.Errorf("the groups got %d, %d and %d records, want 50 each", len(got.all), len(others[0].all), len(others[1].all))
		}
	})
}

func TestRun_RedrivesToANamedTopic(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 100)
		var audit received
		k.Run(consumer.Config{Group: "audit", Topics: []string{"orders"}, Handler: audit.take})
		time.Sleep(10 * time.Second)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		if !slices.Equal(p.SeenBy, []string{"audit", "billing"}) || len(p.Warnings) == 0 {
			t.Errorf("the plan says that %v see it, and warns %q", p.SeenBy, p.Warnings)
		}
		succeeds(t, 100)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		if len(audit.all) != 200 {
			t.Errorf("the other group got %d records, want each twice", len(audit.all))
		}
	})
}
