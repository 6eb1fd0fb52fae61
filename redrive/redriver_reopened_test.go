package redrive_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

// The handler had a bug: it discarded letters that it should have processed. An operator reopens
// them after the fix, and the next run brings them back.
func TestRedriver_BringsBackWhatWasReopened(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 5, discarding)
		r, p := planned(t, k)
		ends(t, redrive.Counts{Discarded: 5})(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1, Window: time.Second}, nil)))
		if _, err := r.WriteOutcomes(t.Context(), "orders.dlq"); err != nil {
			t.Fatal(err)
		}
		one := redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Ranges: []dlq.Range{dlq.At(0, 3)}}}
		_, err := r.Plan(t.Context(), one)
		refused(t, err, redrive.RefusedNothing, "letter orders.dlq/0/3: its handler discarded it in run "+p.ID)
		some := dlq.Filter{Ranges: []dlq.Range{{Until: 3}}}
		if n, err := ledgerOf(k).Reopen(t.Context(), some, dlq.Cursor{}, dlq.ReopenOptions{By: "ben", Why: "the handler is fixed"}); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		s.set(succeeding)
		again := plan(t, r)
		if again.Letters != 3 || len(again.Warnings) > 0 {
			t.Errorf("the plan has %d letters, and warns %q", again.Letters, again.Warnings)
		}
		succeeds(t, 3)(r.Run(t.Context(), again, ann(redrive.Pace{Canary: -1, Window: 2 * time.Second}, nil)))
		if got := states(t, k); got[dlq.Succeeded] != 3 || got[dlq.Discarded] != 2 {
			t.Errorf("the states are %v", got)
		}
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.Counts.Discarded != 5 || o.Counts.Pending != 0 {
			t.Errorf("the first run is %+v, %v", o.Counts, err)
		}
	})
}

// A stopped run can send a letter for the second time that its handler had discarded and that was
// reopened. The report about the first time must not become the outcome of the second.
func TestRedriver_ForgetsTheDiscardReportOfAReopenedLetter(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		s := letters(t, k, 10, blocked)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Window: time.Second, Ramp: -1, Rate: 5}, 5)
		s.stop(t)
		s.set(discarding)
		s.run(k)
		time.Sleep(time.Minute)
		decided(t, k, dlq.Reopened, 0, 5)
		for at := range int64(5) {
			k.Produce(&kgo.Record{Topic: "orders.dlq.ledger", Key: ledgerrecord.DiscardReportKey(p.ID, at)})
		}
		s.set(succeeding)
		succeeds(t, 10)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		if got := states(t, k); got[dlq.Succeeded] != 10 {
			t.Errorf("the states are %v", got)
		}
	})
}

// decided writes what an operator decided about letters, at a moment at which a ledger does not see
// the run that is unfinished.
func decided(t *testing.T, k *consumertest.Kafka, as dlq.State, from, until int64) {
	t.Helper()
	for at := from; at < until; at++ {
		e := dlq.Entry{State: as, At: time.Now(), By: "ben", Why: "x"}
		k.Produce(e.Record("orders.dlq.ledger", 0, at))
	}
}

// Letters are discarded, and some of them reopened, between the plan and the run, and while the run
// is stopped. Both times the run sends what is open, and each letter once.
func TestRedriver_SendsWhatIsReopenedMeanwhile(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var got received
		letters(t, k, 40, got.take)
		decided(t, k, dlq.Compensated, 36, 40)
		r, p := planned(t, k)
		if p.Letters != 36 {
			t.Fatalf("the plan has %d letters", p.Letters)
		}
		decided(t, k, dlq.Reopened, 36, 38) // after the plan: not part of it
		decided(t, k, dlq.Compensated, 0, 4)
		decided(t, k, dlq.Reopened, 0, 2)
		stopped(t, r, p, redrive.Pace{Rate: 5, Canary: -1, Ramp: -1}, 5)
		decided(t, k, dlq.Compensated, 30, 36)
		decided(t, k, dlq.Reopened, 30, 33)
		ends(t, redrive.Counts{Succeeded: 31, Skipped: map[string]int64{redrive.SkippedResolved: 5}})(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		if len(got.all) != 31 {
			t.Errorf("the handler got %d records, want 31", len(got.all))
		}
		if got := states(t, k); got[dlq.Succeeded] != 31 || got[dlq.Reopened] != 2 || got[dlq.Compensated] != 7 {
			t.Errorf("the states are %v", got)
		}
	})
}

// A plan of named letters that were all resolved meanwhile says how.
func TestRun_SaysHowTheLettersOfItsPlanWereResolved(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 2, succeeding)
		r, p := planned(t, k)
		if n, err := ledgerOf(k).Discard(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ben", Why: "sold out"}); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		refused(t, err, redrive.RefusedNothing, "all letters of the plan are resolved by now: letter orders.dlq/0/0: ben discarded it at 2000-01-01T")
		if !strings.Contains(err.Error(), ": sold out; reopen it first; letter orders.dlq/0/1: ben discarded") {
			t.Error(err)
		}
	})
}

// A run in progress has read which letters are open. It would redrive what is discarded now, and
// would record a reopened letter as processed once its group passed it.
func TestRun_UnfinishedKeepsOthersFromReopening(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, discarding)
		r, p := planned(t, k)
		stopped(t, r, p, redrive.Pace{Canary: -1, Window: time.Second, Ramp: -1, Rate: 5}, 5)
		for what, decide := range map[string]func() (int64, error){
			"discard": func() (int64, error) {
				return ledgerOf(k).Discard(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.DiscardOptions{By: "ben", Why: "x"})
			},
			"reopen": func() (int64, error) {
				return ledgerOf(k).Reopen(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.ReopenOptions{By: "ben", Why: "x"})
			},
		} {
			before := len(on(t, k, "orders.dlq.ledger"))
			n, err := decide()
			if n != 0 || !errors.Is(err, dlq.ErrUnfinishedRun) || !strings.Contains(err.Error(), "redrive run "+p.ID+" is unfinished (sending): resume or abort it first") {
				t.Errorf("%s: %d, %v", what, n, err)
			}
			if after := len(on(t, k, "orders.dlq.ledger")); after != before {
				t.Errorf("%s wrote %d records", what, after-before)
			}
		}
		if err := r.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil {
			t.Fatal(err)
		}
		if n, err := ledgerOf(k).Reopen(t.Context(), dlq.Filter{}, dlq.Cursor{}, dlq.ReopenOptions{By: "ben", Why: "x"}); n < 5 || err != nil {
			t.Errorf("after the run: %d, %v", n, err)
		}
	})
}

// The status of a run that is over lost letters: its handler had discarded them after the run's
// end, and an operator reopened them.
func TestStatus_AddsUpAfterAReopen(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, o := overWithPending(t, k, 22)
		s.stop(t)
		lost := dlq.ReopenOptions{By: "ben", Why: "x", Pending: func(letter headers.Position, sent dlq.Entry) bool {
			return letter.Offset >= 20 && sent.Target.Topic == "orders.retry.5s"
		}}
		if n, err := ledgerOf(k).Reopen(t.Context(), dlq.Filter{}, dlq.Cursor{}, lost); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		s.set(discarding)
		s.run(k)
		time.Sleep(time.Minute)
		reopen := func(from, until int64) {
			t.Helper()
			f := dlq.Filter{Ranges: []dlq.Range{{From: from, Until: until}}}
			if n, err := ledgerOf(k).Reopen(t.Context(), f, dlq.Cursor{}, dlq.ReopenOptions{By: "ben", Why: "x"}); n != until-from || err != nil {
				t.Fatal(n, err)
			}
		}
		addsUp := func(when string) {
			t.Helper()
			is, err := r.Status(t.Context(), "orders.dlq", o.ID)
			if c := is.Counts; err != nil || c.Sent != 22 || c.Discarded != 20 || c.Unknown != 2 || c.Pending != 0 {
				t.Errorf("%s: %+v, %v", when, is.Counts, err)
			}
		}
		addsUp("discarded after the end")
		reopen(0, 3)
		addsUp("reopened before their outcomes were recorded")
		if _, err := r.WriteOutcomes(t.Context(), "orders.dlq"); err != nil {
			t.Fatal(err)
		}
		reopen(3, 5)
		addsUp("reopened after that")
	})
}
