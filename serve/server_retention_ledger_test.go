package serve_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// Without a ledger no operator could read who deleted letters, or why, so none are deleted. All
// that writes to the ledger is refused in the same words, and the log has them once. When the
// ledger is there, the server goes on by itself.
func TestRetention_DeletesNothingWithoutALedger(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	admin := kadm.NewClient(c.Client)
	if _, err := admin.DeleteTopics(t.Context(), "orders.dlq.ledger"); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	c.WriteOld("orders.dlq", 90*day, 80*day, day)
	cfg := retention(serve.Retention{MaxAge: 30 * day, Open: true, Every: time.Second})
	s, _ := c.run(cfg)
	const want = "orders.dlq has no ledger: create the topic orders.dlq.ledger, compacted, with as many partitions as orders.dlq"
	cl := c.clientOf(s, "")
	opens(t, cl, "orders.dlq", 3)
	if is, err := cl.Topic(t.Context(), "orders.dlq"); err != nil || !strings.Contains(is.Problem, want) {
		t.Errorf("the topic has the problem %q, %v", is.Problem, err)
	}
	if is, err := cl.Topic(t.Context(), "bills.dlq"); err != nil || is.Problem != "" {
		t.Errorf("the topic that has a ledger has the problem %q, %v", is.Problem, err)
	}
	eventually(t, "a failure is counted", func() bool {
		return strings.Contains(get(t, s, "/metrics"), `siding_retention_failures_total{messaging_destination_name="orders.dlq"}`)
	})
	_, planned := cl.Plan(t.Context(), "orders.dlq", api.RunRequest{})
	_, discarded := cl.Discard(t.Context(), "orders.dlq", api.BulkDiscardRequest{Expect: 3, DiscardRequest: api.DiscardRequest{Why: "x"}})
	_, tried := cl.TryRetention(t.Context(), "orders.dlq")
	_, deleted := cl.ApplyRetention(t.Context(), "orders.dlq")
	for what, err := range map[string]error{"plan": planned, "discard": discarded, "dry run": tried, "retention": deleted} {
		p, ok := errors.AsType[*api.Problem](err)
		if !ok || p.Kind() != api.NoLedger || p.Status != 409 || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", what, err)
		}
	}
	if _, err := s.ApplyRetention(t.Context(), "orders.dlq", "ada"); !errors.Is(err, serve.ErrNoLedger) {
		t.Errorf("the retention ends with %v", err)
	}
	if n := c.Held("orders.dlq"); n != 3 {
		t.Errorf("%d letters stay, want 3", n)
	}
	if n := c.log.count(want); n != 1 || c.log.count("UNKNOWN_TOPIC") > 0 || c.log.count("deadline") > 0 {
		t.Errorf("the log has it %d times", n)
	}
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "orders.dlq.ledger"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ledger is used", func() bool {
		_, err := cl.ApplyRetention(t.Context(), "orders.dlq")
		return err == nil
	})
	if n := c.Held("orders.dlq"); n != 1 {
		t.Errorf("%d letters stay, want 1", n)
	}
	if records := c.Prunes("orders.dlq"); len(records) != 1 {
		t.Errorf("the ledger has %+v", records)
	}
}
