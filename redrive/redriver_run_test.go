package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// Trap 26: the dead-letter topic is consumed to be handled, and its size no longer says how many
// letters are open. A run leaves the letters there.
func TestRun_RedrivesAFixedClass(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax", "sku")
		incident(k, s.config(), 200, "tax", "sku")
		s.has("sku")
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Classes: []string{"tax"}}})
		if p.Letters != 200 || p.ByClass["tax"] != 200 || p.Targets["orders.retry.5s"] != 200 {
			t.Errorf("the plan is %+v", p)
		}
		began := time.Now()
		succeeds(t, 200)(r.Run(t.Context(), p, ann(redrive.Pace{}, nil)))
		if d := time.Since(began); d < 30*time.Second || d > 90*time.Second {
			t.Errorf("it took %v", d)
		}
		s.ranOnce(t, 200)
		sum, err := ledgerOf(k).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil || sum.Open != 200 || sum.Resolved != 200 || len(sum.Failures) != 1 || sum.Failures[0].Class != "sku" {
			t.Errorf("the summary is %+v, %v", sum, err)
		}
	})
}

func TestRun_AbortsOnNewFailuresWithinTheWindow(t *testing.T) {
	t.Parallel()
	for after, aborts := range map[time.Duration]bool{29 * time.Second: true, 31 * time.Second: false} {
		virtual(t, after.String(), func(t *testing.T, k *consumertest.Kafka) {
			s := fixed(t, k, 3)
			r := redriver(t, k)
			o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1}, first(watching, func() {
				time.AfterFunc(after-time.Second/2, func() {
					s.has("tax")
					k.Produce(&kgo.Record{Topic: "orders", Value: []byte("tax:new")})
				})
			})))
			if !aborts {
				succeeds(t, 3)(o, err)
				return
			}
			abortedAgain(t, o, err, "new traffic fails with tax")
		})
	}
}

func TestRun_IgnoresOtherClassesAndGroups(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 100, "sku")
		audit := newService("tax")
		cfg := audit.config()
		cfg.Group = "audit"
		k.Run(cfg)
		r := redriver(t, k)
		p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Groups: []string{"billing"}}})
		// a failure in a strain, which costs no attempt, of a record that had failed before
		m := metaOf(t, on(t, k, "orders.dlq")[0])
		m.Class, m.Attempts, m.Hops = "tax", 1, 2
		m.Original.Offset = 1000
		n := 0
		succeeds(t, 100)(r.Run(t.Context(), p, ann(redrive.Pace{}, func(redrive.Event) {
			if n++; n < 20 {
				k.Produce(&kgo.Record{Topic: "orders.dlq", Value: []byte("x"), Headers: m.Append(nil)})
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku:new")}, &kgo.Record{Topic: "orders", Value: []byte("tax:new")})
			}
		})))
	})
}

// The run began with a canary again, of all letters that it had sent.
func TestResume_DoesNotWaitForRetries(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 200, func(ctx context.Context, r *kgo.Record) error {
			if r.Offset%10 == 9 && consumer.DeliveryOf(ctx, r).Attempt == 1 {
				return errBusy
			}
			return nil
		})
		r, p := planned(t, k)
		ctx, interrupt := context.WithCancel(t.Context())
		o, err := r.Run(ctx, p, ann(redrive.Pace{Ramp: -1, TolerateShare: 1}, func(e redrive.Event) {
			if e.Counts.Sent > 50 && e.Counts.Retrying > 0 {
				interrupt()
			}
		}))
		if !errors.Is(err, context.Canceled) || o.Counts.Sent >= 200 {
			t.Fatalf("the run ended with %v, and %+v", err, o)
		}
		resumed, sent := time.Now(), time.Duration(0)
		o, err = r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, func(e redrive.Event) {
			if e.Counts.Sent == 200 && sent == 0 {
				sent = time.Since(resumed)
			}
		}))
		if err != nil || o.Counts.Sent != 200 || sent > 10*time.Second {
			t.Errorf("the run ended with %v after it had sent all within %v, and %+v", err, sent, o)
		}
	})
}

func TestAbort_StopsARunOfAnotherProcess(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := fixed(t, k, 300)
		first, second := redriver(t, k), redriver(t, k)
		p := plan(t, first)
		lost := underWay(t, first, p, 50)
		if err := second.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, redrive.ErrTaken) {
			t.Errorf("the run ended with %v", err)
		}
		time.Sleep(time.Minute)
		s.mu.Lock()
		ran := len(s.ran)
		s.mu.Unlock()
		runs, err := second.Runs(t.Context(), "orders.dlq")
		if err != nil || len(runs) != 1 || runs[0].State != redrive.Aborted || ran > 150 {
			t.Errorf("the runs are %+v, %v; %d records ran", runs, err, ran)
		}
		if _, err := second.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err != nil {
			t.Errorf("a new run after it: %v", err)
		}
	})
}

// Another process initialises the ids during any transaction of an abort. The abort failed,
// although the run had ended, if that was the last one.
func TestAbort_EndsTheRunThoughItIsFenced(t *testing.T) {
	t.Parallel()
	for nth := 1; nth <= 2; nth++ {
		virtual(t, fmt.Sprint("transaction ", nth), func(t *testing.T, k *consumertest.Kafka) {
			fixed(t, k, 20)
			r, p := planned(t, k)
			ctx, stop := context.WithCancel(t.Context())
			if _, err := r.Run(ctx, p, ann(redrive.Pace{Rate: 1}, first(sentOver(0), stop))); !errors.Is(err, context.Canceled) {
				t.Fatalf("the run ended with %v", err)
			}
			ends := 0
			f := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.InvalidTxnState, When: func(kmsg.Request) bool {
				ends++
				return ends == nth
			}})
			if err := r.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil || f.Hits() != 1 {
				t.Errorf("the abort ended with %v after %d faults in %d transactions", err, f.Hits(), ends)
			}
			if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.State != redrive.Aborted {
				t.Errorf("the run is %+v, %v", o, err)
			}
		})
	}
}

// Trap 23: a replay has no group and no ledger: no operator sees how far it is, and it reads what
// it wrote.
func TestRun_SendsTheLettersOfItsPlanOnly(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 100, "tax") // it is not
		r, p := planned(t, k)
		halfway := false
		failed := redrive.Counts{Failed: 100, FailedByClass: map[string]int64{"tax": 100}}
		ends(t, failed)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Tolerate: 1000}, func(e redrive.Event) {
			if halfway {
				return
			}
			if runs, err := r.Runs(t.Context(), "orders.dlq"); err == nil && len(runs) == 1 {
				halfway = runs[0].Counts.Sent > 0 && runs[0].Counts.Sent < 100
			}
		})))
		if !halfway {
			t.Error("its progress was never halfway")
		}
		if again := plan(t, r); again.Letters != 100 {
			t.Errorf("%d letters are open after all came back, want 100", again.Letters)
		}
	})
}

// Trap 24: a record goes round between its source and its dead-letter topic without end.
func TestRun_RedrivesARecordThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 5, nil)
		r := redriver(t, k)
		for range 3 {
			ends(t, redrive.Counts{Failed: 5})(r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Canary: -1, Tolerate: 1000}, nil)))
		}
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
		refused(t, err, redrive.RefusedTooOften, "")
		if p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", MaxRedrives: -1}); err != nil || p.Letters != 5 {
			t.Errorf("without a limit it is planned with %v", err)
		}
	})
}
