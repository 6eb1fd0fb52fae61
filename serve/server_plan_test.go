package serve_test

import (
	"math"
	"strings"
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
	target.MaxAttempts = 101
	if _, err := cl.Plan(t.Context(), "orders.dlq", api.RunRequest{RunOptions: target}); !client.IsProblem(err, api.InvalidRequest) {
		t.Errorf("a plan with more attempts than a run can have: %v", err)
	}
	opens(t, cl, "orders.dlq", 7)
}

// However long a run is to watch or to grow faster, it does: no number turns that off.
func TestServer_RunsKeepLongTimes(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(1)
	cl, _ := c.serve(serve.Config{})
	opens(t, cl, "orders.dlq", 1)
	const century = 100 * 365 * 24 * 3600 * 1000
	run, err := cl.Start(t.Context(), "orders.dlq", api.RunRequest{RunOptions: api.RunOptions{Pace: api.Pace{RampMs: 1 << 60, WindowMs: math.MaxInt64}}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if run.Pace.RampMs != century || run.Pace.WindowMs != century {
		t.Errorf("the run's pace is %+v", run.Pace)
	}
	if _, err := cl.Abort(t.Context(), "orders.dlq", run.ID, api.AbortRequest{}); err != nil {
		t.Error(err)
	}
}

// A run takes an edit of 512 KiB, whether a value, a patch or headers. A larger one is refused
// before anything is written.
func TestServer_EditsAreOfASizeThatRunsKeep(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	c.outage(2)
	cl, _ := c.serve(serve.Config{})
	opens(t, cl, "orders.dlq", 2)
	for what, edit := range map[string]api.Edit{
		"is broken":            {SetHeaders: []api.SetHeader{{Key: "dlq-reason"}}, Patch: []byte(`[1]`), Value: &api.NewBytes{Text: "x"}},
		"has a patch too deep": {Patch: []byte(strings.Repeat(`{"a":`, 101) + "1" + strings.Repeat("}", 101))},
	} {
		if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, api.RunOptions{Edit: edit}, ""); !client.IsProblem(err, api.BadEdit) {
			t.Errorf("an edit that %s: %v", what, err)
		}
	}
	if _, err := cl.Redrive(t.Context(), "orders.dlq", 0, 0, api.RunOptions{Target: api.Target{Topic: "no topic"}}, ""); !client.IsProblem(err, api.NoTarget) {
		t.Errorf("a target that no topic can have as its name: %v", err)
	}
	const most = 512 << 10
	partition := int32(0)
	for name, edit := range map[string]func(n int) api.Edit{
		"a value": func(n int) api.Edit { return api.Edit{Value: &api.NewBytes{Text: strings.Repeat("v", n)}} },
		"a header": func(n int) api.Edit {
			return api.Edit{SetHeaders: []api.SetHeader{{Key: "k", Value: api.NewBytes{Base64: make([]byte, n-1)}}}}
		},
	} {
		large := api.RunOptions{Pace: quick, Edit: edit(most + 1)}
		if _, err := cl.Redrive(t.Context(), "orders.dlq", partition, 0, large, ""); !client.IsProblem(err, api.BadEdit) {
			t.Errorf("%s of a byte too many: %v", name, err)
		}
		run, err := cl.Redrive(t.Context(), "orders.dlq", partition, 0, api.RunOptions{Pace: quick, Edit: edit(most)}, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if last := ends(t, cl, run); last.Counts.Sent != 1 {
			t.Errorf("%s: the run ended as %+v", name, last)
		}
		partition++
	}
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
