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
