package redrive_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive"
)

// overWithPending makes n letters, and a run that ends before any of them has an outcome.
func overWithPending(t *testing.T, k *consumertest.Kafka, n int) (*redrive.Redriver, *switched, redrive.Outcome) {
	t.Helper()
	s := letters(t, k, n, blocked)
	r := redriver(t, k)
	o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, nil))
	if err != nil || o.State != redrive.Done || o.Counts.Pending != int64(n) {
		t.Fatal(o, err)
	}
	return r, s, o
}

// lost makes retention delete the copies that have not run.
func lost(t *testing.T, k *consumertest.Kafka, s *switched) {
	t.Helper()
	s.stop(t)
	if err := k.Cluster.DeleteRecords("orders.retry.5s", 0, -1); err != nil {
		t.Fatal(err)
	}
}

// The letters were unknown in the status, and redriven in the ledger. No plan selected them, and
// prune deleted them.
func TestWriteOutcomes_OpensUnknownLettersAgain(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, o := overWithPending(t, k, 20)
		lost(t, k, s)
		if found, err := readLedger(t, k).Prunable(t.Context(), time.Time{}, nil); err != nil || found.Letters != 0 || found.Pending != 20 {
			t.Errorf("prunable %+v, %v, want none", found, err)
		}
		n, err := r.WriteOutcomes(t.Context(), "orders.dlq")
		l := readLedger(t, k)
		if err != nil || n != 20 || l.Count(dlq.Unknown) != 20 {
			t.Errorf("%d letters are resolved, %v; of %d it is not known", n, err, l.Count(dlq.Unknown))
		}
		if found, err := l.Prunable(t.Context(), time.Time{}, nil); err != nil || found.Letters != 0 || found.Pending != 0 {
			t.Errorf("prunable %+v, %v, want none", found, err)
		}
		is, err := r.Status(t.Context(), "orders.dlq", o.ID)
		if c := is.Counts; err != nil || is.State != redrive.Done || c.Unknown != 20 || c.Pending != 0 || c.Sent != 20 {
			t.Errorf("the run is %+v, %v", is, err)
		}
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Wait: true}})
		if err != nil || p.Letters != 20 || !strings.Contains(strings.Join(p.Warnings, "\n"), "20 letters were redriven before, with an unknown outcome") {
			t.Errorf("the plan is %+v, %v", p, err)
		}
	})
}

func TestWriteOutcomes_WritesLateOutcomesOnce(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, o := overWithPending(t, k, 20)
		if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 0 || err != nil {
			t.Errorf("%d letters are resolved that no consumer has run, %v", n, err)
		}
		s.set(succeeding)
		s.stop(t)
		s.run(k)
		time.Sleep(time.Minute)
		var wg sync.WaitGroup
		var of [3]int64
		for i := range of { // operators at once
			wg.Go(func() {
				var err error
				if of[i], err = redriver(t, k).WriteOutcomes(t.Context(), "orders.dlq"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := of[0] + of[1] + of[2]; n != 20 {
			t.Errorf("%d letters are resolved, want 20", of)
		}
		is, err := r.Status(t.Context(), "orders.dlq", o.ID)
		if c := is.Counts; err != nil || c.Succeeded != 20 || c.Pending != 0 || c.Sent != 20 {
			t.Errorf("the run is %+v, %v", is, err)
		}
		if l := readLedger(t, k); l.Count(dlq.Succeeded) != 20 {
			t.Errorf("%d have succeeded", l.Count(dlq.Succeeded))
		}
	})
}

// Half of the letters failed again and waited in a retry topic. As soon as the outcomes of the
// others were recorded, the run looked as if none had failed.
func TestWriteOutcomes_KeepsWhatFailedAgainAndWaits(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, _ := overWithPending(t, k, 20)
		var called atomic.Int64
		s.set(func(context.Context, *kgo.Record) error {
			if called.Add(1) <= 10 {
				return errBusy
			}
			return nil
		})
		s.stop(t)
		s.run(k)
		for called.Load() < 20 {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second) // the offsets are committed, and the retries are due in four more
		if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 10 || err != nil {
			t.Errorf("%d letters are resolved, %v, want 10", n, err)
		}
		runs, err := r.Runs(t.Context(), "orders.dlq")
		if c := runs[0].Counts; err != nil || c.Succeeded != 10 || c.Pending != 10 || c.Retrying != 10 {
			t.Errorf("the run is recorded with %+v, %v; want 10 that succeeded, and 10 that wait to be retried", c, err)
		}
	})
}

// Recording outcomes takes the ids from the process that has them, and writes entries about its
// letters.
func TestWriteOutcomes_DoesNothingDuringARun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, _ := overWithPending(t, k, 20)
		k.Produce(&kgo.Record{Topic: "orders.dlq"})
		lost(t, k, s)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: "orders", Wait: true}})
		o := stopped(t, r, p, redrive.Pace{}, 0)
		if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 0 || err != nil || readLedger(t, k).Count(dlq.Redriven) != 20 {
			t.Errorf("%d letters are resolved, %v", n, err)
		}
		if err := r.Abort(t.Context(), "orders.dlq", o.ID, byAnn); err != nil {
			t.Fatal(err)
		}
		if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 20 || err != nil {
			t.Errorf("after its end %d letters are resolved, %v", n, err)
		}
	})
}

// Between finding an outcome and writing it, another process did both, and a run redrove the
// letters.
func TestWriteOutcomes_LeavesLaterOutcomes(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, _ := overWithPending(t, k, 20)
		lost(t, k, s)
		meanwhile := func() {
			if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 20 || err != nil {
				t.Errorf("%d letters are resolved, %v", n, err)
			}
			s.set(succeeding)
			s.run(k)
			p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Wait: true}})
			if err != nil {
				t.Error(err)
				return
			}
			if o, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Ramp: -1, Window: time.Second}, nil)); err != nil || o.Counts.Sent != 20 {
				t.Error(o, err)
			}
		}
		var begun atomic.Bool
		k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
			if !begun.Swap(true) {
				k.Cluster.SleepControl(meanwhile)
			}
			return nil, nil, false
		})
		if n, err := redriver(t, k).WriteOutcomes(t.Context(), "orders.dlq"); n != 0 || err != nil {
			t.Errorf("%d letters are resolved too late, %v", n, err)
		}
		if l := readLedger(t, k); l.Count(dlq.Unknown) != 0 || l.Count(dlq.Succeeded)+l.Count(dlq.Redriven) != 20 {
			t.Errorf("%d have succeeded, and of %d it is not known", l.Count(dlq.Succeeded), l.Count(dlq.Unknown))
		}
	})
}
