package serve_test

import (
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

// soon is a rule whose waits are minutes.
const soon = "rules: [{name: outage, topics: '*', classes: [http.*], cool-down: 2m, window: 30s, wait: 10m, max-wait: 10m}]"

// What a rule cannot do now it tries again after a while, longer each time, and not in each round:
// the letter was redriven too often, or is of a group that does not exist any more. There are
// letters of another group, too, which were read, and do not fit.
func TestRules_RestAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"too often":         strings.Replace(soon, "wait: 10m", "max-replays: 1, wait: 10m", 1),
		"others do not fit": strings.Replace(soon, "cool-down", "where: group == 'gone', cool-down", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 1)
				is.letterFor("gone", "http.503", time.Now())
				is.serve(serve.Config{RulesFile: rules(t, file)})
				time.Sleep(100 * time.Minute)
				if n := is.log.count("a rule could not be applied"); n < 8 || n > 20 {
					t.Errorf("the rule was refused %d times in a hundred minutes", n)
				}
			})
		})
	}
}

// The oldest letter is of a group that does not exist any more, and the next of a partition that
// the source lost. The rule says that they cannot come home, and brings home the others: as
// canaries, all at once, and while it rests.
func TestRules_AGroupThatIsGoneBlocksNoOther(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders.dlq", 1)
		k.CreateTopic("orders.dlq.ledger", 1)
		early := &station{t: t, k: k}
		early.letterFor("gone", "http.503", time.Now())
		early.letterAt(7, "billing", "http.503", time.Now())
		is := outageAt(t, k, 3)
		is.serve(serve.Config{RulesFile: rules(t, soon)})
		time.Sleep(time.Minute)
		is.within(5*time.Minute, "the circuit is open", func() bool { return ask[[]api.Rule](is, "/rules")[0].On[0].Open })
		is.broken.Store(false)
		is.within(30*time.Minute, "all letters of the service came home", func() bool { return is.done.Load() == 3 })
		time.Sleep(20 * time.Minute)
		refusals := is.log.count("a rule could not be applied")
		is.within(11*time.Minute, "it rests anew", func() bool { return is.log.count("a rule could not be applied") > refusals })
		if on := ask[[]api.Rule](is, "/rules")[0].On[0]; on.Would != "redrive" || on.Letters != 2 || !strings.Contains(on.Why, "orders has no partition beyond 0, and orders.dlq/0/1 needs one") {
			t.Errorf("of the letters that are left, the rule says %+v", on)
		}
		is.broken.Store(true)
		is.fail(2)
		var plan api.Plan
		if is.ask(http.MethodPost, "/topics/orders.dlq/plan", "{}", &plan); plan.Letters != 2 || plan.Skipped[redrive.SkippedNoTier] != 1 || plan.Skipped[redrive.SkippedNoPartition] != 1 {
			t.Errorf("the plan is %+v", plan)
		}
		is.broken.Store(false)
		is.within(5*time.Minute, "the next letters came home", func() bool { return is.done.Load() == 5 })
	})
}

// The clock of the server was fast on which an operator let the rule go on. A pause after that
// counts.
func TestRules_AWrongClockUndoesNoPause(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, hourly)})
		time.Sleep(time.Minute)
		is.note("rule/outage/decision/0946689900000-resumed", map[string]any{"v": 1, "at": time.Now().Add(30 * time.Minute), "do": "resumed", "by": "ada"})
		if code := is.ask(http.MethodPost, "/rules/outage/topics/orders.dlq/pause", `{"why":"deploying"}`, nil); code != http.StatusOK {
			t.Fatalf("pausing: %d", code)
		}
		if on := ask[[]api.Rule](is, "/rules")[0].On[0]; on.Paused == nil || on.Paused.Why != "deploying" {
			t.Errorf("the rule is %+v", on)
		}
		time.Sleep(time.Hour)
		if n := is.done.Load(); n > 0 {
			t.Errorf("%d letters came home though the rule is paused", n)
		}
	})
}

// The clocks of services are wrong: fast, so that one failure is yet to come, or slow. A rule waits
// all the same while they fail.
func TestRules_AWrongClockOfAServiceHidesNoFailure(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, test := range map[string]struct{ first, then time.Duration }{
		"one was fast": {365 * 24 * time.Hour, 0},
		"slow":         {0, -3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.letter(time.Now().Add(test.first))
				is.serve(serve.Config{RulesFile: rules(t, hourly)})
				for range 8 {
					time.Sleep(5 * time.Minute)
					is.letter(time.Now().Add(test.then))
				}
				if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 {
					t.Errorf("in spite of failures there is %+v", runs)
				}
			})
		})
	}
}

// The clock of a service is slow. A server that begins in the midst of its failures, or takes the
// topic over, does not take them for old.
func TestRules_ASlowClockHidesNoFailureAtTheNextServer(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		file := rules(t, soon)
		stop := is.serve(serve.Config{RulesFile: file})
		for range 6 {
			is.letter(time.Now().Add(-20 * time.Minute))
			time.Sleep(time.Minute)
		}
		is.letter(time.Now().Add(-20 * time.Minute))
		stop()
		is.serve(serve.Config{RulesFile: file})
		time.Sleep(time.Minute)
		if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 {
			t.Errorf("in spite of failures there is %+v", runs)
		}
		is.broken.Store(false)
		is.within(5*time.Minute, "a run begins", func() bool { return len(ask[[]api.Run](is, "/runs")) > 0 })
	})
}
