package serve_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/serve"
)

// Letters are deleted by the clock, and by an operator with the program; an operator pauses a rule
// and lets it go on. The audit has it all: who, when, how many, and where the letters were
// archived.
func TestServer_ConsoleAuditHasDeletionsAndPauses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	dir := t.TempDir()
	s, _ := c.run(serve.Config{
		RulesFile: rules(t, "rules: [{name: an outage, topics: 'orders*', classes: [http.*], cool-down: 1h}]"),
		Topics:    []serve.Topic{{Match: "orders*", Retention: &serve.Retention{MaxAge: -1, MaxCount: 1, Every: time.Second, Archive: dir}}},
	})
	c.fail("orders", "decode", 3) // one on each partition
	c.fail("bills", "decode", 6)
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 3)
	c.Discard("orders.dlq")
	c.Discard("bills.dlq")
	l := dlq.NewLedger("bills.dlq", "bills.dlq.ledger", c.Opts...)
	p, err := l.Prunable(t.Context(), time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prune(t.Context(), p, dlq.PruneOptions{By: "bob", Why: "disk is full"}); err != nil {
		t.Fatal(err)
	}
	for _, act := range []string{"pause", "resume"} {
		if answer := send(t, s, http.MethodPost, "/api/v1/rules/an%20outage/topics/orders.dlq/"+act, `{"why":"to `+act+` it"}`); answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", act, answer.StatusCode)
		}
	}
	eventually(t, "both deletions are in the audit, with their ends", func() bool {
		_, text := visit(t, s, httptest.NewRequest(http.MethodGet, "/audit", nil))
		return strings.Contains(text, "retention deleted") && strings.Contains(text, "bob deleted") && strings.Contains(text, "to resume it") &&
			!strings.Contains(text, "nobody recorded its end") // the end is a later record
	})
	words(t, s, "/audit?topic=orders.dlq", "retention deleted 2 discarded · archived in "+dir, "2 orders.dlq max-count 1",
		"local paused a rule an outage none orders.dlq to pause it", "local let a rule go on an outage none orders.dlq to resume it")
	words(t, s, "/audit?by=bob", "1 decision by bob", "bob deleted 6 discarded · without an archive 6 bills.dlq disk is full")
	if acts, err := cl.Acts(t.Context(), "bills.dlq", 1); err != nil || len(acts) != 1 || acts[0].By != "bob" || acts[0].What != "deleted" || acts[0].Letters != 6 || acts[0].Why != "disk is full" {
		t.Errorf("the API has %+v, %v", acts, err)
	}
	acts, err := cl.Acts(t.Context(), "orders.dlq", 0)
	var did []string
	for _, a := range acts {
		did = append(did, a.What)
	}
	// Retention may delete between the pause and its end.
	says := strings.Join(slices.DeleteFunc(slices.Clone(did), func(what string) bool { return what == "deleted" }), " ")
	if err != nil || !strings.Contains(says, "resumed-rule paused-rule") || !slices.Contains(did, "deleted") || !strings.Contains(says, "discarded") {
		t.Errorf("the API has %v, %v", did, err)
	}
}
