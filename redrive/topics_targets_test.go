package redrive_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

// On a retry topic a record without siding's headers would be dead-lettered as malformed, even if
// an operator named the topic.
func TestTarget_MayBeAnotherRetryTopic(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"", "orders.retry.5s", "orders.retry.30s"} {
		virtual(t, tier, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 20, succeeding)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: tier}})
			if tier == "" {
				tier = "orders.retry.5s"
			}
			if p.Targets[tier] != 20 || len(p.Targets) != 1 || !slices.Equal(p.SeenBy, []string{"billing"}) {
				t.Errorf("the plan has the targets %v, seen by %v", p.Targets, p.SeenBy)
			}
			began := time.Now()
			succeeds(t, 20)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Rate: -1, Window: 2 * time.Second}, nil)))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			for i, c := range on(t, k, tier) {
				if m := metaOf(t, c); m.Group != "billing" || m.Attempts != 0 || m.Original.Offset != int64(i) || m.Class != "" || m.Redrive.ID != p.ID || m.Redrive.Count != 1 {
					t.Fatalf("copy %d has %+v", i, m)
				}
			}
		})
	}
}

func TestTarget_OnWhichRecordsCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 2, nil)
		k.CreateTopic("orders.retry.7s", 1)
		k.CreateTopic("bills.retry.5s", 1)
		r := redriver(t, k)
		for _, c := range []struct {
			target  redrive.Target
			refused redrive.Refusal
			want    string
		}{
			{redrive.Target{Topic: "orders.retry.7s"}, redrive.RefusedNoTier, "orders.retry.7s has no committed offset of group billing on partition 0"},
			{redrive.Target{Topic: "bills.retry.5s"}, redrive.RefusedTarget, "is a retry topic of bills, and cannot take records of orders"},
			{redrive.Target{Topic: "orders.dlq"}, redrive.RefusedTarget, "orders.dlq is the dlq topic of orders"},
			{redrive.Target{Topic: "bills.dlq"}, redrive.RefusedTarget, "bills.dlq is the dlq topic of bills"},
			{redrive.Target{Topic: "orders.dlq.ledger"}, redrive.RefusedTarget, "orders.dlq.ledger is the ledger topic"},
			{redrive.Target{Topic: "orders.retry.5s", KeepTimestamp: true}, redrive.RefusedTarget, "omit KeepTimestamp"},
			{redrive.Target{Topic: "nowhere"}, redrive.RefusedTarget, "nowhere does not exist"},
			{redrive.Target{Topic: "a topic"}, redrive.RefusedTarget, `"a topic" is not the name of a topic: Kafka allows 249 letters, digits, '.', '_' and '-'`},
			{redrive.Target{Topic: ".."}, redrive.RefusedTarget, `".." is not the name of a topic`},
			{redrive.Target{Topic: strings.Repeat("a", 250)}, redrive.RefusedTarget, "is not the name of a topic"},
		} {
			_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: c.target})
			e, refused := errors.AsType[*redrive.RefusedError](err)
			if err == nil || !strings.Contains(err.Error(), c.want) || refused != (c.refused != "") || refused && e.Reason != c.refused {
				t.Errorf("%+v: %v; want %q in it, refused as %q", c.target, err, c.want, c.refused)
			}
		}
	})
}

// These dead letters were not written by siding, and go to a target whose consumers report no
// outcome.
func TestTarget_TakesLettersWithoutAGroup(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, nil)
		k.CreateTopic("replay", 1)
		var foreign []*kgo.Record
		for i := range 100 {
			foreign = append(foreign, &kgo.Record{Topic: "orders.dlq", Key: []byte("k"), Value: fmt.Append(nil, i), Headers: []kgo.RecordHeader{{Key: "x-death", Value: []byte("1")}}})
		}
		k.Produce(foreign...)
		r := redriver(t, k)
		if _, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: groupless}); err == nil || !strings.Contains(err.Error(), "100 letters fit, and none names its group: name a target topic") {
			t.Errorf("without a target: %v", err)
		}
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: groupless, Target: redrive.Target{Topic: "replay"}})
		if err != nil || p.Letters != 100 || !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.Contains(w, "the outcomes of the letters will not be known") }) {
			t.Fatalf("the plan is %+v, %v", p, err)
		}
		began := time.Now()
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Ramp: -1, Window: time.Second}, nil))
		if c := o.Counts; err != nil || c.Sent != 100 || c.Unfollowed != 100 || c.Pending+c.Unknown+c.Succeeded != 0 || time.Since(began) > 10*time.Second {
			t.Errorf("after %v the run ended with %v, and %+v", time.Since(began), err, o)
		}
		for i, c := range on(t, k, "replay") {
			if string(c.Value) != fmt.Sprint(i) || string(c.Key) != "k" || len(c.Headers) != 2 || c.Headers[0].Key != "x-death" {
				t.Fatalf("copy %d is %s with %v", i, c.Value, c.Headers)
			}
		}
	})
}

func TestEdit_ValueIsForOneLetterAndIsKept(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, value := range []string{"new", ""} {
		virtual(t, value, func(t *testing.T, k *consumertest.Kafka) {
			var got received
			letters(t, k, 2, got.take)
			r := redriver(t, k)
			edit := redrive.Edit{Value: []byte(value)}
			if _, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Edit: edit}); err == nil || !strings.Contains(err.Error(), "for one letter, and 2 are selected") {
				t.Errorf("of two: %v", err)
			}
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Edit: edit, Filter: dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 1)}}})
			stopped(t, r, p, redrive.Pace{}, 0)
			succeeds(t, 1)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
			if len(got.all) != 1 || string(got.all[0].Value) != value || got.all[0].Value == nil || got.all[0].Offset != 1 {
				t.Errorf("the handler got %v", got.all)
			}
			letter, notes, err := ledgerOf(k).Find(t.Context(), 0, 1)
			if err != nil || string(letter.Record.Value) != "{}" || len(notes) == 0 {
				t.Fatalf("the letter is %v, %v; want it as it was", letter, err)
			}
			if e := notes[0].Entry; !slices.Equal(e.Edited, []string{"value"}) || e.By != "ann" || e.Why != "JIRA-1" {
				t.Errorf("the ledger says %+v", e)
			}
		})
	}
}

// Records that failed on the source went to a retry topic that the run did not watch, and counted
// as succeeded.
func TestMisnamed_RetryTopicsRefuseTheSource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		naming  retrytopics.Naming
		commits []string // besides those of the consumer
		force   bool
		want    redrive.Refusal
	}{
		"as the service has them":      {},
		"otherwise":                    {naming: retrytopics.Naming{Retry: "{topic}.again.{delay}"}, want: redrive.RefusedNaming},
		"otherwise, and it is forced":  {naming: retrytopics.Naming{Retry: "{topic}.again.{delay}"}, force: true},
		"as it has them, beside other": {commits: []string{"orders-5s"}},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			s := letters(t, k, 3, nil)
			for _, topic := range c.commits {
				s.stop(t)
				k.CreateTopic(topic, 1)
				setOffset(t, k, topic, 0)
			}
			r := redriverOf(t, redrive.Config{Kafka: k.Opts(), Naming: c.naming})
			p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders", Force: c.force, Wait: true}})
			if c.want == "" {
				if err != nil || c.force != strings.Contains(strings.Join(p.Warnings, "\n"), "orders.retry.30s, which looks like a retry topic") {
					t.Errorf("the plan is %+v, %v", p, err)
				}
				return
			}
			refused(t, err, c.want, "orders.retry.30s")
		})
	}
}

// A service without retry topics must not look like a service with other names for them, whatever
// else it consumes.
func TestMisnamed_IsNoServiceWithoutRetryTopics(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		k.CreateTopic("orders-eu", 1)
		s := newService("tax")
		cfg := s.config()
		cfg.Topics, cfg.Policy.Tiers = []string{"orders", "orders-eu"}, nil
		incident(k, cfg, 3, "tax")
		s.has()
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders"}})
		if err != nil || len(p.Warnings) > 0 {
			t.Fatalf("the plan is %+v, %v", p, err)
		}
		succeeds(t, 3)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
	})
}
