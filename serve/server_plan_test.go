package serve_test

import (
	"testing"

	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/client"
)

func TestServer_PlanSaysWhatARunWouldDo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	cl, _ := c.serve(serve.Config{})
	c.fail("orders", "decode", 5)
	c.fail("orders", "http.503", 2)
	opens(t, cl, "orders.dlq", 7)
	target := api.RunOptions{Target: api.Target{Topic: "orders"}}
	plan, err := cl.Plan(t.Context(), "orders.dlq", api.RunRequest{Filter: api.Filter{Class: []string{"decode"}}, RunOptions: target})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Letters != 5 || plan.ByClass["decode"] != 5 || plan.Targets["orders"] != 5 || len(plan.Warnings) == 0 {
		t.Errorf("the plan is %+v", plan)
	}
	if _, err := cl.Plan(t.Context(), "orders.dlq", api.RunRequest{Filter: api.Filter{Class: []string{"tax.*"}}, RunOptions: target}); !client.IsProblem(err, api.NothingSelected) {
		t.Errorf("a plan of no letters: %v", err)
	}
	if _, err := cl.Plan(t.Context(), "orders.dlq", api.RunRequest{}); !client.IsProblem(err, api.NoTier) {
		t.Errorf("a plan without a retry topic: %v", err)
	}
	opens(t, cl, "orders.dlq", 7)
}

// Who may act on a topic may not write to each topic to which the server may.
func TestServer_AnotherTargetTakesAnAdministrator(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders", "commands")
	s, _ := c.run(serve.Config{Access: serve.Access{TokensFile: tokenFile(t, map[string]string{"op": "[{role: operator}]", "root": "[{role: admin}]"})}})
	op, root := c.clientOf(s, "op"), c.clientOf(s, "root")
	c.fail("orders", "decode", 2)
	opens(t, op, "orders.dlq", 2)
	to := func(topic string) api.RunRequest {
		return api.RunRequest{RunOptions: api.RunOptions{Target: api.Target{Topic: topic}}}
	}
	for what, do := range map[string]func(api.RunRequest) error{
		"a plan": func(in api.RunRequest) error { _, err := op.Plan(t.Context(), "orders.dlq", in); return err },
		"a run":  func(in api.RunRequest) error { _, err := op.Start(t.Context(), "orders.dlq", in, ""); return err },
	} {
		if err := do(to("commands")); !client.IsProblem(err, api.NoRole) {
			t.Errorf("%s to another topic: %v", what, err)
		}
	}
	if plan, err := op.Plan(t.Context(), "orders.dlq", to("orders")); err != nil || plan.Targets["orders"] != 2 {
		t.Errorf("a plan to the source: %+v, %v", plan, err)
	}
	if plan, err := root.Plan(t.Context(), "orders.dlq", to("commands")); err != nil || plan.Targets["commands"] != 2 {
		t.Errorf("the plan of an administrator: %+v, %v", plan, err)
	}
	opens(t, op, "orders.dlq", 2)
}
