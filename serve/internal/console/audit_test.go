package console

import "testing"

// The audit shows each act, and how it ended, with a link to what it was about. Who
// resumed a run is among it.
func TestAudit_HasDeletionsAndPauses(t *testing.T) {
	t.Parallel()
	c := newSpecimen(texts{class: "decode", message: "a reason", value: "v", name: "billing"})
	has(t, "the audit", look(t, c, "/audit"),
		"8 decisions", "deleted", "2 open or without an outcome · 3 discarded · archived in billing · it failed, and some may be there still: a reason",
		"ben resumed a run", "pod-2, process 1", "unknown deletedwithout an archive 1 orders.dlq", "paused a rule billing", "let a rule go on billing none orders.dlq no reason given")
	found := false
	for _, n := range parse(t, ask(c, "/audit").Body) {
		found = found || attr(n, "href") == "/rules/billing/topics/orders.dlq"
	}
	if !found {
		t.Error("there is no link to the rule")
	}
}
