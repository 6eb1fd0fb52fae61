package redrive_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// The run's record has the reason of an abort, too. With one that no broker takes, the abort would
// fence the run's process, and then fail.
func TestRunOptions_NeedAnOperatorAndBoundTheReason(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		o := stopped(t, r, p, redrive.Pace{Rate: 2, Canary: -1, Ramp: -1, Window: time.Second}, 2)
		before := len(on(t, k, "orders.dlq.ledger"))
		long := strings.Repeat("w", 4097)
		const tooLong = "orders.dlq: the option By or Why has 4097 bytes, and 4096 are the most"
		for _, c := range []struct{ by, why, want string }{{"", "", "orders.dlq: the option By is empty"}, {"ann", long, tooLong}, {long, "", tooLong}} {
			_, ran := r.Run(t.Context(), p, redrive.RunOptions{By: c.by, Why: c.why})
			_, resumed := r.Resume(t.Context(), "orders.dlq", o.ID, redrive.RunOptions{By: c.by, Why: c.why})
			for what, err := range map[string]error{
				"run": ran, "resume": resumed, "abort": r.Abort(t.Context(), "orders.dlq", o.ID, redrive.AbortOptions{By: c.by, Why: c.why}),
			} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: %v, want %q", what, err, c.want)
				}
			}
		}
		if after := len(on(t, k, "orders.dlq.ledger")); after != before {
			t.Errorf("the ledger got %d records", after-before)
		}
	})
}

// A run that is too slow, or too fast, can be stopped and resumed at another rate. Its other limits
// stay as they were.
func TestResume_TakesANewPace(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, c := range map[string]struct{ resumed, want redrive.Pace }{
		"none":   {redrive.Pace{}, redrive.Pace{Rate: 200, Burst: 20, MaxLag: 2000, Tolerate: 3, TolerateShare: 0.1, Window: time.Second}},
		"rate":   {redrive.Pace{Rate: 1000}, redrive.Pace{Rate: 1000, Burst: 100, MaxLag: 10_000, Tolerate: 3, TolerateShare: 0.1, Window: time.Second}},
		"limits": {redrive.Pace{MaxLag: 7, Window: 2 * time.Second, Tolerate: -1}, redrive.Pace{Rate: 200, Burst: 20, MaxLag: 7, TolerateShare: 0.1, Window: 2 * time.Second}},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 300, succeeding)
			r, p := planned(t, k)
			stopped(t, r, p, redrive.Pace{Rate: 200, Canary: -1, Ramp: -1, Tolerate: 3, Window: time.Second}, 20)
			var rate float64
			o, err := r.Resume(t.Context(), "orders.dlq", p.ID, redrive.RunOptions{By: "bob", Why: "faster", Pace: c.resumed, On: func(e redrive.Event) { rate = e.Rate }})
			succeeds(t, 300)(o, err)
			if rate != c.want.Rate || !strings.HasPrefix(o.Owner, "bob on ") || o.By != "ann" || o.Why != "JIRA-1" {
				t.Errorf("the rate is %v, and the outcome %+v", rate, o)
			}
			var rec struct{ Pace redrive.Pace }
			if err := json.Unmarshal(readLedger(t, k).Runs()[p.ID], &rec); err != nil || rec.Pace != c.want {
				t.Errorf("the run has the pace %+v, %v; want %+v", rec.Pace, err, c.want)
			}
		})
	}
}
