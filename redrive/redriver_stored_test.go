package redrive_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/reserved"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/retrytopics"
)

// elsewhere is a plan as another process reads it.
func elsewhere(t *testing.T, p *redrive.Plan) *redrive.Plan {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var stored redrive.Plan
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	return &stored
}

// A plan is made in a review, and run by a job. Letters that were resolved in between, and those
// that came, are treated as in the process that made the plan.
func TestRedriver_RunsAStoredPlan(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T, *redrive.Plan) *redrive.Plan{
		"live": func(_ *testing.T, p *redrive.Plan) *redrive.Plan { return p }, "stored": elsewhere,
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			var got received
			s := letters(t, k, 30, nil)
			_, p := planned(t, k)
			p = store(t, p)
			k.DeadLettered(k.Produce(records(5, "{}")...)[4], "terminal") // not part of the plan
			some := dlq.Filter{Ranges: []dlq.Range{{From: 10, Until: 14}}}
			if n, err := ledgerOf(k).Discard(t.Context(), some, dlq.Cursor{}, dlq.DiscardOptions{By: "ben", Why: "x"}); n != 4 || err != nil {
				t.Fatal(n, err)
			}
			s.set(got.take)
			r := redriver(t, k)
			o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, nil))
			ends(t, redrive.Counts{Succeeded: 26, Skipped: map[string]int64{redrive.SkippedResolved: 4}})(o, err)
			if len(got.all) != 26 || o.ID != p.ID {
				t.Errorf("the handler got %d records of run %s, want 26 of %s", len(got.all), o.ID, p.ID)
			}
			_, err = r.Run(t.Context(), store(t, p), ann(redrive.Pace{}, nil))
			refused(t, err, redrive.RefusedNothing, "the plan was run already, as orders.dlq/"+p.ID)
		})
	}
}

// Of a topic with the same name, on another cluster or after a deletion, other letters have these
// offsets.
func TestRedriver_RefusesAStoredPlanOfAnotherTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, nil)
		r, p := planned(t, k)
		stored := elsewhere(t, p)
		named := redriverOf(t, redrive.Config{Kafka: k.Opts(), Naming: retrytopics.Naming{Ledger: "{topic}.fates"}})
		_, err := named.Run(t.Context(), stored, ann(redrive.Pace{}, nil))
		refused(t, err, redrive.RefusedNaming, "the plan has the source orders and the ledger orders.dlq.ledger, and by this naming they are orders and orders.fates")
		k.DeleteTopic("orders.dlq")
		k.CreateTopic("orders.dlq", 1)
		k.Produce(records(3, "{}")...)
		_, err = r.Run(t.Context(), stored, ann(redrive.Pace{}, nil))
		refused(t, err, redrive.RefusedNothing, "recreated since the plan was made, or the plan is of another cluster")
	})
}

// A plan was stored while its group was away. When it ran, the group was back, and another one read
// the source too. The run showed the warning of then, and not that of now.
func TestRedriver_WarnsOfAStoredPlanAsOfNow(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 3, succeeding)
		s.stop(t)
		r := redriver(t, k)
		p := elsewhere(t, planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders", Wait: true}}))
		if len(p.Warnings) != 1 {
			t.Errorf("the plan warns %q", p.Warnings)
		}
		s.run(k)
		k.Run(consumer.Config{Group: "mail", Topics: []string{"orders"}, Handler: succeeding})
		time.Sleep(10 * time.Second) // both commit
		var said []string
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, func(e redrive.Event) {
			if strings.HasPrefix(e.Message, "warning: ") {
				said = append(said, e.Message)
			}
		}))
		if want := "warning: 2 groups read orders, and all of them get the records again: billing, mail"; err != nil || len(said) != 1 || said[0] != want {
			t.Errorf("%v: it says %q, want %q", err, said, want)
		}
	})
}

// A producer gave a record a timestamp before the year 0. A plan with its letter could not be
// stored.
func TestRedriver_StoresAPlanWithAnyTime(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, nil)
		for _, ms := range []int64{math.MinInt64, -62167219200001, math.MaxInt64} {
			l := on(t, k, "orders.dlq")[0]
			l.Headers = reserved.With(l.Headers, reserved.OriginalTimestamp, strconv.FormatInt(ms, 10))
			k.DeleteTopic("orders.dlq")
			k.CreateTopic("orders.dlq", 1)
			k.Produce(&kgo.Record{Topic: "orders.dlq", Value: l.Value, Headers: l.Headers})
			_, p := planned(t, k)
			if stored := elsewhere(t, p); stored.Letters != 1 {
				t.Errorf("%d: the plan has %d letters", ms, stored.Letters)
			}
		}
	})
}
