package integration_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// Trap 29: a source is recreated or a group rewound, and the new dead letters are taken for copies
// of old ones and deleted.
//
// Ids of topics and the times of letters and of entries are the brokers' here. dlq/lineage_test.go
// has the single cases.
func TestLineage_WhatFailsAfterARunThatSucceededIsPlannedAgain(t *testing.T) {
	t.Parallel()
	recreated := func(s *site, v *service, n int) *service {
		// A broker that does not check ids of topics may take the last commit on the old topic for
		// one on the new one (docs/versions.md says which); there, consumers have to be stopped.
		running := commitsByTopicID(s.t)
		if !running {
			must(s.t, v.Stop())
		}
		v.failing("tax")
		s.DeleteTopic(v.topic)
		s.CreateTopic(v.topic, 1)
		if !running {
			if _, err := s.admin.DeleteOffsets(s.t.Context(), v.group, kadm.TopicsSet{v.topic: {0: {}}}); err != nil {
				s.t.Fatal(err)
			}
			v = s.deploy(v.topic, v.group, time.Second)
		}
		s.incident(v.topic, "parcel", n)
		return v
	}
	rewound := func(s *site, v *service, n int) *service {
		must(s.t, v.Stop())
		to := kadm.Offsets{}
		to.AddOffset(v.topic, 0, 0, -1)
		must(s.t, s.admin.CommitAllOffsets(s.t.Context(), v.group, to))
		v = s.deploy(v.topic, v.group, time.Second) // with the bug again
		s.await("dead letters of what was run again", func() bool { return s.count(v.topic+".dlq") == int64(2*n) })
		return v
	}
	for name, c := range map[string]struct {
		redriven bool // before it failed again
		again    func(*site, *service, int) *service
	}{
		"the source is recreated":              {true, recreated},
		"the source is recreated before a run": {false, recreated},
		"the group is rewound":                 {true, rewound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onKafka(t)
			const n = 10
			topic, v := s.repaired(1, n)
			// redriven redrives all open letters, and returns their number.
			redriven := func() int64 {
				t.Helper()
				r, p := s.planned(topic)
				o, err := r.Run(t.Context(), p, redrive.RunOptions{By: "ann", Pace: redrive.Pace{Rate: -1, Canary: -1, Ramp: -1, Window: 5 * time.Second}})
				if err != nil || o.Counts.Succeeded != p.Letters {
					t.Fatalf("the run of %d letters ended with %v, and %+v", p.Letters, err, o)
				}
				return p.Letters
			}
			open, resolved := int64(2*n), int64(0)
			if c.redriven {
				open, resolved = n, redriven()
			}
			v = c.again(s, v, n)

			ledger := dlq.NewLedger(topic+".dlq", topic+".dlq.ledger", s.Opts()...)
			prunable, err := ledger.Prunable(t.Context(), time.Time{}, nil)
			if err == nil {
				err = ledger.Prune(t.Context(), prunable, dlq.PruneOptions{})
			}
			starts, listErr := s.admin.ListStartOffsets(t.Context(), topic+".dlq")
			must(t, errors.Join(err, listErr))
			if at := starts[topic+".dlq"][0].Offset; at != resolved {
				t.Errorf("prune deleted what is before %d, want the %d that were resolved", at, resolved)
			}
			v.fixed()
			if n := redriven(); n != open {
				t.Errorf("the plan has %d letters, want %d", n, open)
			}
		})
	}
}

// Letters are compensated, discarded and reopened beside a plan that is stored and run by another
// process. Ids of topics, compaction and transactions are the brokers' here.
func TestReopened_LettersAndAStoredPlan(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	const n = 20
	topic, v := s.repaired(1, n)
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
		_, p := s.planned(topic)
		if p.Letters != want {
			t.Fatalf("the plan is %+v, want %d letters", p, want)
		}
		text, err := json.Marshal(p)
		var stored redrive.Plan
		must(t, errors.Join(err, json.Unmarshal(text, &stored)))
		return &stored
	}
	runner, err := redrive.New(redrive.Config{Kafka: s.Opts()})
	must(t, err)
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
	must(t, ledger.Read(t.Context(), nil, nil))
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
	must(t, v.Stop())
	s.DeleteTopic(letters)
	s.CreateTopic(letters, 1)
	_, err = runner.Run(t.Context(), p, redrive.RunOptions{By: "ben"})
	if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != redrive.RefusedNothing {
		t.Errorf("the topic is another, and the run ended with %v", err)
	}
}
