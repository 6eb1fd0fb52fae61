package serve_test

import (
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

// A rule says what it would do. Paused, it does nothing, at no server, until it is resumed; and
// its history has who paused it and what it did.
func TestServer_PausesARuleOnATopic(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	c := newCluster(t, "orders", "bills")
	file := rules(t, "rules: [{name: an outage, topics: 'orders*', classes: [http.*], cool-down: 6s, window: 1s}]")
	cl, _ := c.serve(serve.Config{RulesFile: file})
	second, _ := c.serve(serve.Config{RulesFile: file})
	opens(t, cl, "orders.dlq", 0)
	is, err := cl.PauseRule(t.Context(), "an outage", "orders.dlq", api.PauseRequest{Why: "deploying"})
	if err != nil || is.Paused == nil || is.Paused.By != "local" || is.Paused.Why != "deploying" || is.Would != "nothing" {
		t.Fatalf("paused: %+v, %v", is, err)
	}
	if _, err := cl.PauseRule(t.Context(), "an outage", "bills.dlq", api.PauseRequest{}); !client.IsProblem(err, api.NoRule) {
		t.Errorf("a topic that the rule is not for: %v", err)
	}
	done := c.outage(3)
	opens(t, cl, "orders.dlq", 3)
	time.Sleep(8 * time.Second)
	all, err := second.Rules(t.Context())
	if err != nil || len(all) != 1 || len(all[0].On) != 1 || all[0].On[0].Paused == nil || all[0].On[0].Letters != 3 || all[0].CoolDownMs != 6000 {
		t.Fatalf("the rules at the other server are %+v, %v", all, err)
	}
	if done.Load() != 0 {
		t.Errorf("a paused rule redrove %d letters", done.Load())
	}
	if is, err = second.ResumeRule(t.Context(), "an outage", "orders.dlq", api.PauseRequest{}); err != nil || is.Paused != nil || is.Would != "redrive" {
		t.Fatalf("resumed: %+v, %v", is, err)
	}
	var history []api.RuleEvent
	eventually(t, "the rule's run has ended", func() bool {
		history, err = cl.RuleHistory(t.Context(), "an outage", 0)
		return err == nil && len(history) == 3 && history[0].End != ""
	})
	if history[0].What != "redrive" || history[0].End != "done" || history[0].Run == "" || history[1].What != "resumed" || history[2].What != "paused" || history[2].Why != "deploying" {
		t.Errorf("the history is %+v", history)
	}
	if is, err = cl.TryRule(t.Context(), "an outage", "orders.dlq"); err != nil || is.Would != "nothing" || is.Letters != 0 || done.Load() != 3 {
		t.Errorf("afterwards: %+v, %v, %d letters came home", is, err, done.Load())
	}
}
