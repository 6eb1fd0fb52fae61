package serve_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// A bug stays for longer than a record may be redriven. Each canary is another letter, so one may
// still be tried when the bug is fixed.
func TestRules_CanariesAreNotUsedUp(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 30)
		is.serve(serve.Config{RulesFile: rules(t, hourly)})
		time.Sleep(30 * time.Hour)
		if runs := ask[[]api.Run](is, "/runs"); len(runs) < 6 {
			t.Fatalf("there were %d runs in 30 hours", len(runs))
		}
		is.broken.Store(false)
		is.within(6*time.Hour, "all letters came home", func() bool { return is.done.Load() == 30 })
	})
}

// What a rule cannot do now it tries again after a while, longer each time, and not in each round.
func TestRules_RestAfterARefusal(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 1)
		is.serve(serve.Config{RulesFile: rules(t, strings.Replace(hourly, "wait: 1h", "max-replays: 1, wait: 1h", 1))})
		time.Sleep(10 * time.Hour)
		if n := is.log.count("a rule could not be applied"); n == 0 || n > 30 {
			t.Errorf("the rule was refused %d times in ten hours", n)
		}
	})
}

// The clock of the server was fast on which somebody let the rule go on. A pause after that counts.
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
		time.Sleep(5 * time.Hour)
		if n := is.done.Load(); n > 0 {
			t.Errorf("%d letters came home though the rule is paused", n)
		}
	})
}

// The clocks of services are wrong: fast, so that one failure is yet to come, or slow. A rule waits
// all the same while they fail.
func TestRules_AWrongClockOfAServiceHidesNoFailure(t *testing.T) {
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
