package redrive_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// A copy was due by the clock of the operator's machine: where that was an hour ahead, the run waited for an hour. It is due by
// every clock, on the quick way and on the long one.
func TestCopy_IsDueByEveryClock(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]redrive.Edit{"as it is": {}, "edited": {Unset: []string{"trace"}}} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 3, succeeding)
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Edit: edit})
			began := time.Now()
			succeeds(t, 3)(r.Run(t.Context(), p, redrive.Pace{}, nil))
			copies := on(t, k, "orders.retry.5s")
			for _, c := range copies {
				m, err := headers.Parse(c.Headers)
				if err != nil || m.NotBefore.IsZero() || m.NotBefore.After(began.AddDate(-1, 0, 0)) {
					t.Errorf("a copy is due at %v, %v, and the run began at %v", m.NotBefore, err, began)
				}
			}
			if len(copies) != 3 {
				t.Errorf("there are %d copies", len(copies))
			}
		})
	}
}
