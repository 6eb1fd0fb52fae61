package redrive_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
)

func discarding(context.Context, *kgo.Record) error { return classify.Discard(errors.New("not ours")) }

// saidDiscarded counts the discard reports of consumers, and how many of them remain.
func saidDiscarded(t *testing.T, k *consumertest.Kafka) (said, stands int) {
	t.Helper()
	last := map[string]bool{}
	err := ledgerOf(k).Read(t.Context(), nil, func(n *dlq.LedgerRecord) {
		if _, _, ok := ledgerrecord.DiscardReportOf(n.Run); ok {
			last[string(n.Record.Key)] = n.Record.Value != nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range last {
		if is {
			stands++
		}
	}
	return len(last), stands
}

// A ledger is compacted, and each report has its own key: they would stay for ever.
func TestApplyVerdict_RemovesTheDiscardReport(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, discarding)
		r := redriver(t, k)
		o, err := r.Run(t.Context(), plan(t, r), ann(redrive.Pace{Ramp: -1, Window: time.Minute}, nil))
		if err != nil || o.State != redrive.Done || o.Counts.Discarded != 20 {
			t.Fatal(o, err)
		}
		if said, stands := saidDiscarded(t, k); said != 20 || stands != 0 {
			t.Errorf("of %d letters consumers said so, and of %d that stands; want 20 and 0", said, stands)
		}
		if n := readLedger(t, k).Count(dlq.Discarded); n != 20 {
			t.Errorf("%d are discarded", n)
		}
	})
}

// No run records these outcomes: the ledger, the status and the next plan go by the consumer's
// report.
func TestStatus_CountsDiscardReportsAfterTheRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r, s, o := overWithPending(t, k, 20)
		s.stop(t)
		s.set(discarding)
		s.run(k)
		time.Sleep(time.Minute)
		is, err := r.Status(t.Context(), "orders.dlq", o.ID)
		if c := is.Counts; err != nil || c.Discarded != 20 || c.Pending != 0 || c.Sent != 20 {
			t.Errorf("the run is %+v, %v", is, err)
		}
		if n, err := r.WriteOutcomes(t.Context(), "orders.dlq"); n != 0 || err != nil {
			t.Errorf("%d letters are resolved, %v", n, err)
		}
		if n := readLedger(t, k).Count(dlq.Discarded); n != 20 {
			t.Errorf("%d are discarded", n)
		}
		_, err = r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Wait: true}})
		refused(t, err, redrive.RefusedNothing, "")
	})
}
