package redrive

import "testing"

// The engine writes the run as it ends, while a poll reads it: the race detector found that.
func TestNewOutcomes_ReadsACopyOfTheRun(t *testing.T) {
	t.Parallel()
	run := &ownedRun{topics: &topics{source: "orders"}, rec: &record{Tiers: map[string]string{"billing/0": "orders.retry.5s"}, Groups: []string{"billing"}}}
	o := newOutcomes(run, nil)
	*run.rec = record{}
	if !o.follows("billing") {
		t.Error("a poll reads what the engine writes")
	}
}
