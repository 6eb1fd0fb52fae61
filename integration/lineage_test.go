package integration_test

import (
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
			if err := v.Stop(); err != nil {
				s.t.Fatal(err)
			}
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
		if err := v.Stop(); err != nil {
			s.t.Fatal(err)
		}
		to := kadm.Offsets{}
		to.AddOffset(v.topic, 0, 0, -1)
		if err := s.admin.CommitAllOffsets(s.t.Context(), v.group, to); err != nil {
			s.t.Fatal(err)
		}
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
			topic := topicName(t)
			s.CreateTopic(topic, 1)
			v := s.deploy(topic, topic, time.Second)
			const n = 10
			s.incident(topic, "order", n)
			v.fixed()
			r, err := redrive.New(redrive.Config{Kafka: s.Opts()})
			if err != nil {
				t.Fatal(err)
			}
			// redriven redrives all open letters, and returns their number.
			redriven := func() int64 {
				t.Helper()
				p, err := r.Plan(t.Context(), redrive.Selection{Topic: topic + ".dlq"})
				if err != nil {
					t.Fatal(err)
				}
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
			if err := errors.Join(err, listErr); err != nil {
				t.Fatal(err)
			}
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
