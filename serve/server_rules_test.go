package serve_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// slowly is the rule hourly, whose runs take minutes.
var slowly = strings.Replace(hourly, "window: 1m", "window: 1m, rate: 0.1", 1)

// leaves lets a server with the rule slowly begin a run of the letters, and ends the server in the
// midst of it. It returns the run and how many letters came home.
func (is *station) leaves() (run api.Run, home int64) {
	is.t.Helper()
	is.broken.Store(false)
	stop := is.serve(serve.Config{RulesFile: rules(is.t, slowly)})
	is.within(time.Hour, "the rule sends", func() bool { return is.done.Load() > 2 })
	run = ask[[]api.Run](is, "/runs")[0]
	stop()
	return run, is.done.Load()
}

// A rule began a run, and its server ended. Then the topic became manual-only. No server goes on
// with the run, whether the rule is still in the file or has left it; an operator does.
func TestServer_NoRuleGoesOnWithItsRunOnAManualOnlyTopic(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, file := range map[string]string{"it is in the file": slowly, "it left the file": "rules: []"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 20)
				run, home := is.leaves()
				manual := true
				is.serve(serve.Config{RulesFile: rules(t, file), Topics: []serve.Topic{{Match: "*", ManualOnly: &manual}}})
				time.Sleep(20 * time.Minute) // another server takes a run over within two
				if got := ask[api.Run](is, "/topics/orders.dlq/runs/"+run.ID); got.Ended != nil || got.Here || is.done.Load() != home {
					t.Fatalf("%d letters were home, now %d, and the run is %+v", home, is.done.Load(), got)
				}
				if code := is.ask(http.MethodPost, "/topics/orders.dlq/runs/"+run.ID+"/resume", "{}", nil); code != http.StatusAccepted {
					t.Fatalf("an operator resumes it: %d", code)
				}
				is.within(time.Hour, "all letters came home", func() bool { return is.done.Load() == 20 })
			})
		})
	}
}

// A rule began a run, and its server ended. The next owner of the topic goes on with the run: the
// rule decides nothing anew, and no letter goes out twice.
func TestServer_ARuleGoesOnWithItsRunAtTheNextOwner(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters = 20
		is := outageAt(t, k, letters)
		run, home := is.leaves()
		is.serve(serve.Config{RulesFile: rules(t, slowly)})
		is.within(time.Minute, "the next server has the run", func() bool {
			runs := ask[[]api.Run](is, "/runs")
			return len(runs) == 1 && runs[0].ID == run.ID && runs[0].Here
		})
		is.within(time.Hour, "all letters came home", func() bool { return is.done.Load() == letters })
		var history []api.RuleEvent
		is.within(10*time.Minute, "the end is noted", func() bool {
			history = ask[[]api.RuleEvent](is, "/rules/outage/history")
			return len(history) > 0 && history[0].End != ""
		})
		if len(history) != 1 || history[0].Run != run.ID || history[0].End != "done" {
			t.Errorf("the history is %+v", history)
		}
		runs := ask[[]api.Run](is, "/runs")
		if len(runs) != 1 || runs[0].State != "done" || runs[0].By != "rule outage" || runs[0].Counts.Sent != letters {
			t.Errorf("the runs are %+v", runs)
		}
		if _, all := is.called(); all != 2*letters || home == letters {
			t.Errorf("%d letters were home when the server ended, and the handler was called %d times", home, all)
		}
	})
}

// A server decided, and ended before it began the run. So the decision says, and the next owner
// decides anew. If the server was suspended and begins the run after all, its end counts.
func TestServer_ADecisionWhoseServerEndedIsNotBegun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 5)
		runs := redriverAt(is)
		plan, err := runs.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		is.note(fmt.Sprintf("rule/outage/decision/%013d-redrive", at.UnixMilli()), map[string]any{"v": 1, "at": at, "do": "redrive", "run": plan.ID})
		is.serve(serve.Config{RulesFile: rules(t, hourly)})
		end := func() string {
			history := ask[[]api.RuleEvent](is, "/rules/outage/history")
			if len(history) != 1 {
				return ""
			}
			return history[0].End
		}
		is.within(2*time.Minute, "the decision has an end", func() bool { return end() != "" })
		if got := end(); got != "not begun: its server ended" {
			t.Errorf("it ended as %q", got)
		}
		if _, err := runs.Run(t.Context(), plan, redrive.RunOptions{By: "rule outage"}); err == nil {
			t.Fatal("the run should abort")
		}
		is.within(2*time.Minute, "the end of the run is noted", func() bool { return strings.HasPrefix(end(), "aborted: ") })
		if on := ask[[]api.Rule](is, "/rules")[0].On[0]; !on.Open {
			t.Errorf("the run aborted, and the rule is %+v", on)
		}
	})
}
