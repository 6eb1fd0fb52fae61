package serve_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// The servers of two groups have the same rule, and decide in the same millisecond. One of them
// begins the run. The note of the other one's decision took the place of its own, so the abort of
// the run opened no circuit.
func TestRules_OfTwoGroupsHaveOneCircuit(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 6)
		file := rules(t, soon)
		is.serve(serve.Config{Group: "a", RulesFile: file})
		is.serve(serve.Config{Group: "b", RulesFile: file})
		time.Sleep(30 * time.Minute)
		runs := ask[[]api.Run](is, "/runs")
		for i := 1; i < len(runs); i++ { // the newest first
			if waited := runs[i-1].Started.Sub(runs[i].Started); waited < 10*time.Minute {
				t.Errorf("run %s began %v after the abort of %s", runs[i-1].ID, waited, runs[i].ID)
			}
		}
		if len(runs) < 3 {
			t.Errorf("there were %d runs in 30 minutes", len(runs))
		}
	})
}
