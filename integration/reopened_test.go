package integration_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// Letters are compensated, discarded and reopened beside a plan that is stored and run by another
// process. Ids of topics, compaction and transactions are the brokers' here.
func TestReopened_LettersAndAStoredPlan(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 1)
	v := s.deploy(topic, topic, time.Second)
	const n = 20
	s.incident(topic, "order", n)
	v.fixed()
	letters := topic + ".dlq"
	ledger := dlq.NewLedger(letters, letters+".ledger", s.Opts()...)
	part := func(from, until int64) dlq.Filter {
		return dlq.Filter{Ranges: []dlq.Range{{From: from, Until: until}}}
	}
	decided := func(want int64) func(int64, error) {
		return func(got int64, err error) {
			t.Helper()
			if err := errors.Join(err, ledger.Read(t.Context(), nil, nil)); err != nil || got != want {
				t.Fatalf("%d letters were written, %v; want %d", got, err, want)
			}
		}
	}
	decided(5)(ledger.Discard(t.Context(), part(0, 5), dlq.Cursor{}, dlq.DiscardOptions{By: "ann", Why: "refunded", Compensated: true}))
	decided(5)(ledger.Discard(t.Context(), part(5, 10), dlq.Cursor{}, dlq.DiscardOptions{By: "ann", Why: "sold out"}))

	// planned makes a plan and stores it; another process reads it.
	planned := func(want int64) *redrive.Plan {
		t.Helper()
		r, err := redrive.New(redrive.Config{Kafka: s.Opts()})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: letters})
		if err != nil || p.Letters != want {
			t.Fatalf("the plan is %+v, %v; want %d letters", p, err, want)
		}
		text, err := json.Marshal(p)
		var stored redrive.Plan
		if err := errors.Join(err, json.Unmarshal(text, &stored)); err != nil {
			t.Fatal(err)
		}
		return &stored
	}
	runner, err := redrive.New(redrive.Config{Kafka: s.Opts()})
	if err != nil {
		t.Fatal(err)
	}
	run := func(p *redrive.Plan, want int64) {
		t.Helper()
		o, err := runner.Run(t.Context(), p, redrive.RunOptions{By: "ben", Pace: redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, Window: 5 * time.Second}})
		if err != nil || o.Counts.Succeeded != want {
			t.Fatalf("the run ended with %v, and %+v", err, o)
		}
		if o, err := runner.Progress(t.Context(), letters, p.ID); err != nil || o.State != redrive.Done || o.Counts.Succeeded != want {
			t.Errorf("its progress is %+v, %v", o, err)
		}
	}
	p := planned(10)
	decided(3)(ledger.Reopen(t.Context(), part(0, 3), dlq.Cursor{}, dlq.ReopenOptions{By: "ben", Why: "the refund failed"}))
	run(p, 10)
	run(planned(3), 3)
	if ran := v.results(); len(ran) != 13 {
		t.Errorf("the handler ran %d letters, want 13", len(ran))
	}
	if err := ledger.Read(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	for state, want := range map[dlq.State]int64{dlq.Succeeded: 13, dlq.Compensated: 2, dlq.Discarded: 5, dlq.Reopened: 0} {
		if got := ledger.Count(state); got != want {
			t.Errorf("%d letters are %s, want %d", got, state, want)
		}
	}
	if prunable, err := ledger.Prunable(t.Context(), time.Time{}, nil); err != nil || prunable.Letters != n {
		t.Errorf("%+v can be pruned, %v; want all", prunable, err)
	}

	v.failing("tax")
	s.incident(topic, "late", 2)
	p = planned(2)
	if err := v.Stop(); err != nil {
		t.Fatal(err)
	}
	s.DeleteTopic(letters)
	s.CreateTopic(letters, 1)
	_, err = runner.Run(t.Context(), p, redrive.RunOptions{By: "ben"})
	if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != redrive.RefusedNothing {
		t.Errorf("the topic is another, and the run ended with %v", err)
	}
}
