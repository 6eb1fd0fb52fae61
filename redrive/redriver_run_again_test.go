package redrive_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// A run's id is in the headers of its copies, and in the ledger's entries about them. Two runs with
// one id would take each other's copies for their own.
func TestRun_RunsAPlanOnceAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, nil)
		r, p := planned(t, k)
		was := *p
		was.Targets, was.Warnings = maps.Clone(p.Targets), slices.Clone(p.Warnings)
		targets := p.Targets
		pace := redrive.Pace{Canary: -1, Ramp: -1, Tolerate: 10, Window: time.Second}
		if _, err := r.Run(t.Context(), p, ann(pace, nil)); err != nil {
			t.Fatal(err)
		}
		targets["mine"] = 1
		if p.Targets["mine"] != 1 || !slices.Equal(p.Warnings, was.Warnings) || p.Targets["orders.retry.5s"] != was.Targets["orders.retry.5s"] {
			t.Errorf("the run made of the plan %+v", p)
		}
		_, err := r.Run(t.Context(), p, ann(pace, nil))
		refused(t, err, redrive.RefusedNothing, "was run already")
	})
}

// The run tried for ever to take its transactional ids again, and reported nothing.
func TestRetake_EndsWhereItMayNotAndReportsWhereItCannot(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, fault := range map[string]kfake.Fault{
		"a right that was taken away": {Err: kerr.TransactionalIDAuthorizationFailed, Count: -1},
		"a broker that has trouble":   {Err: kerr.UnknownServerError, Count: 3},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 300, succeeding)
			r := redriver(t, k)
			ctx := within(t, 10*time.Minute)
			var f *kfake.FaultHandle
			var said []string
			p := plan(t, r)
			o, err := r.Run(ctx, p, ann(redrive.Pace{Rate: 100, Canary: -1, Ramp: -1}, func(e redrive.Event) {
				if strings.HasSuffix(e.Message, "; trying again") {
					said = append(said, e.Message)
				}
				if f == nil && e.Counts.Sent > 50 {
					k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, Count: 1})
					fault.Keys = []kmsg.Key{kmsg.InitProducerID}
					f = k.Cluster.Fault(fault)
				}
			}))
			if fault.Count > 0 {
				if err != nil || o.Counts.Sent != 300 || len(said) == 0 {
					t.Errorf("the run ended with %v, and %+v; it said %q", err, o, said)
				}
				return
			}
			if denied, ok := errors.AsType[*redrive.DeniedError](err); !ok || denied.Resource != "transactional-id" || o.State.Finished() {
				t.Fatalf("the run ended with %v, and %+v", err, o)
			}
			f.Remove()
			// it is granted again
			succeeds(t, 300)(r.Resume(ctx, "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		})
	}
}

// An operator discards letters of a run that is stopped.
func TestResume_SendsNoLetterThatWasDiscarded(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 100, succeeding)
		r, p := planned(t, k)
		sent := stopped(t, r, p, redrive.Pace{Canary: -1, Ramp: -1}, 20).Counts.Sent
		decided(t, k, dlq.Discarded, sent, 100)
		ends(t, redrive.Counts{Succeeded: sent, Skipped: map[string]int64{redrive.SkippedResolved: 100 - sent}})(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		if n := len(on(t, k, "orders.retry.5s")); int64(n) != sent {
			t.Errorf("%d copies are on the tier, want %d", n, sent)
		}
	})
}

// A run ended before it had begun, since no broker led its ledger for seconds: the client asks
// again where a broker denies that it leads, but not where it knows of no leader.
func TestRun_WaitsWhileALeaderMoves(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, topic := range []string{"orders.dlq", "orders.dlq.ledger", "orders.retry.5s"} {
		virtual(t, topic, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 5, succeeding)
			r, p := planned(t, k)
			leaderless := func() *kfake.FaultHandle {
				return k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: topic, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
			}
			time.AfterFunc(3*time.Second, leaderless().Remove)
			succeeds(t, 5)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, nil)))
			time.AfterFunc(3*time.Second, leaderless().Remove)
			if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.State != redrive.Done {
				t.Errorf("its status is %+v, %v", o, err)
			}
		})
	}
}
