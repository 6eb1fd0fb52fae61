package redrive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// A caller that decides by itself may have decided long before the claim.
func TestRunOptions_VetoForbidsARunByWhatCameBeforeItsClaim(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		paused := errors.New("the rule is paused")
		o := ann(redrive.Pace{Window: time.Second}, func(redrive.Event) { t.Error("a run that was forbidden has begun") })
		asked := 0
		o.Veto = func(ctx context.Context) error {
			asked++
			runs, err := r.Runs(ctx, "orders.dlq") // the ledger can be read
			if err != nil || len(runs) > 0 {
				t.Errorf("before the claim the ledger has %v, %v", runs, err)
			}
			return paused
		}
		before := len(on(t, k, "orders.dlq.ledger"))
		if _, err := r.Run(t.Context(), p, o); !errors.Is(err, paused) || asked != 1 {
			t.Errorf("the run ended with %v, asked %d times", err, asked)
		}
		if after := len(on(t, k, "orders.dlq.ledger")); after != before {
			t.Errorf("the ledger got %d records", after-before)
		}
		o = ann(redrive.Pace{Window: time.Second}, nil)
		o.Veto = func(context.Context) error { return nil }
		succeeds(t, 20)(r.Run(t.Context(), p, o))
	})
}

// Another process decides about the same letters, and is faster.
func TestRunOptions_VetoIsAskedAgainBehindAnotherProcess(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		other := plan(t, r)
		ended, asked, over := make(chan error, 1), 0, errors.New("another run has moved them")
		o := ann(redrive.Pace{Window: time.Second}, nil)
		o.Veto = func(ctx context.Context) error {
			if asked++; asked > 1 {
				return over
			}
			// while this process is suspended
			_, err := r.Run(ctx, other, ann(redrive.Pace{Window: time.Second}, nil))
			ended <- err
			return nil
		}
		if _, err := r.Run(t.Context(), p, o); err == nil {
			t.Error("a run began on letters that another one has moved")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		runs, err := r.Runs(t.Context(), "orders.dlq")
		if err != nil || len(runs) != 1 || runs[0].ID != other.ID {
			t.Errorf("the runs are %v, %v", runs, err)
		}
	})
}

// A rule's run that its server left is not continued where the rule may not run any more.
func TestRunOptions_VetoForbidsToResume(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		left := stopped(t, r, p, redrive.Pace{Rate: 2, Canary: -1, Ramp: -1, Window: time.Second}, 2)
		manual := errors.New("only operators redrive this topic")
		_, err := r.Resume(t.Context(), "orders.dlq", left.ID, redrive.RunOptions{By: "rule x", Veto: func(context.Context) error { return manual }}, redrive.IfSilent())
		if !errors.Is(err, manual) {
			t.Errorf("it ended with %v", err)
		}
		now, err := r.Progress(t.Context(), "orders.dlq", left.ID)
		if err != nil || now.Claim != left.Claim {
			t.Errorf("the run was %+v, and is %+v, %v", left, now, err)
		}
	})
}
