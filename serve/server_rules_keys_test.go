package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
	"github.com/sidingkafka/siding/serve/internal/duration"
)

// often is a rule whose circuit is open for minutes.
const often = "rules: [{name: outage, topics: '*', classes: [http.*], cool-down: 5m, window: 1m, max-replays: 2, wait: 10m, max-wait: 40m}]"

// with returns the rule hourly with further keys.
func with(keys string) string {
	return strings.Replace(hourly, "cool-down", keys+", cool-down", 1)
}

// reasons returns why a rule decided what it did, by run, as the notes in the ledger have it.
func (is *station) reasons() map[string]string {
	is.t.Helper()
	all := map[string]string{}
	err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", is.k.Opts()...).Read(is.t.Context(), nil, func(n *dlq.LedgerRecord) {
		if !strings.HasPrefix(n.Run, "serve/rule/outage/decision/") {
			return
		}
		var d struct{ Run, Why string }
		if err := json.Unmarshal(n.Record.Value, &d); err != nil {
			is.t.Error(err)
		}
		all[d.Run] = d.Why
	})
	if err != nil {
		is.t.Fatal(err)
	}
	return all
}

// Letters of other classes come all the time. They hold no rule up.
func TestRules_OtherClassesDoNotHoldThemUp(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, hourly)})
		for range 3 {
			time.Sleep(4 * time.Minute)
			is.letterOf("tax.TableMiss", time.Now())
		}
		is.within(time.Minute, "all letters of the rule came home", func() bool { return is.done.Load() == 3 })
	})
}

// A delay is the rule's: a letter comes home when it has waited for that long, though others of its
// class fail all the time. With the quiet time of its class it waited for an hour in vain.
func TestRules_ADelayIsOfEachLetter(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, strings.Replace(hourly, "cool-down: 10m", "delay: 10m", 1))})
		for range 4 {
			time.Sleep(2 * time.Minute)
			is.letterOf("http.500", time.Now())
		}
		if n := is.done.Load(); n > 0 {
			t.Errorf("%d letters came home before their delay was over", n)
		}
		is.letterOf("http.500", time.Now())
		is.within(3*time.Minute, "the letters came home whose delay was over", func() bool { return is.done.Load() == 3 })
	})
}

// A rule selects by what a request does: here by the job's type in a header, and by the value. It
// reads each letter once. While none fits it begins nothing and plans nothing, until a letter comes
// or is opened again that does. The letters that it does not fit are those of the next rule.
func TestRules_SelectByWhatRequestsDo(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		job := func(name, value string) *kgo.Record {
			return &kgo.Record{Topic: "orders", Value: []byte(value), Headers: []kgo.RecordHeader{{Key: "job-type", Value: []byte(name)}}}
		}
		is := outageAt(t, k, 1)
		is.failWith(job("SendMail", `{"n":1}`), job("SendMail", "no JSON"), job("Bill", `{"n":2}`), job("SendMail", `{"n":2}`), job("SendMail", `{"n":3}`))
		is.serve(serve.Config{Refresh: 20 * time.Second, RulesFile: rules(t, `rules:
  - {name: mails, topics: '*', classes: [http.*], headers: [job-type=SendMail], where: value.n > 1, delay: 5m, window: 1m}
  - {name: others, topics: '*', classes: [http.*], delay: 22m, window: 1m}
`)})
		is.known()
		if code := is.ask(http.MethodPost, "/topics/orders.dlq/letters/0/4/discard", `{"why":"by hand"}`, nil); code != http.StatusOK {
			t.Fatalf("discarding: %d", code)
		}
		on := func() api.RuleOnTopic { return ask[[]api.Rule](is, "/rules")[0].On[0] }
		quiet := func(what string, home, runs, read int64) {
			t.Helper()
			time.Sleep(7 * time.Minute)
			before := is.log.count("")
			time.Sleep(2 * time.Minute)
			got, all := on(), int64(len(ask[[]api.Run](is, "/runs")))
			if is.done.Load() != home || all != runs || got.Read != read || got.Letters != 0 || got.Would != "nothing" || got.Why != "no open letter fits" {
				t.Errorf("%s: %d letters came home in %d runs, want %d in %d; the rule is %+v", what, is.done.Load(), all, home, runs, got)
			}
			if want := "where failed on 1 letter: not selected; the first is orders.dlq/0/2"; got.Problem != want {
				t.Errorf("%s: the problem is %q, want %q", what, got.Problem, want)
			}
			if n := is.log.count("") - before; n > 0 {
				t.Errorf("%s: the log has %d characters of two quiet minutes", what, n)
			}
		}
		is.broken.Store(false)
		quiet("the rule's letter came home", 1, 1, 5)
		is.broken.Store(true)
		is.fail(1)
		is.broken.Store(false)
		quiet("a letter came that does not fit", 1, 1, 6)
		if code := is.ask(http.MethodPost, "/topics/orders.dlq/letters/0/4/reopen", `{"why":"it does fit"}`, nil); code != http.StatusOK {
			t.Fatalf("reopening: %d", code)
		}
		is.within(time.Minute, "the letter that was opened again came home", func() bool { return is.done.Load() == 2 })
		time.Sleep(3 * time.Minute)
		is.within(5*time.Minute, "the others whose delay is over came home by the second rule", func() bool { return is.done.Load() == 6 })
		if all := ask[[]api.Rule](is, "/rules"); all[0].Filter.Where != "value.n > 1" || !slices.Equal(all[0].Filter.Header, []string{"job-type=SendMail"}) {
			t.Errorf("the API shows %+v", all)
		}
	})
}

// A rule begins runs at its times only, which are those of its zone.
func TestRules_BeginRunsAtTheirTimesOnly(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		began := time.Now() // at midnight of a Saturday, 14:00 of Friday on Hawaii
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, with("times: ['Fri 16:00-17:00'], zone: Pacific/Honolulu"))})
		time.Sleep(time.Until(began.Add(2*time.Hour - time.Minute)))
		on := ask[api.RuleOnTopic](is, "/rules/outage/topics/orders.dlq/dry-run")
		if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 || on.Would != "nothing" || !strings.Contains(on.Why, "none of the rule's times") {
			t.Fatalf("a minute before its time the rule is %+v, and there is %+v", on, runs)
		}
		is.within(3*time.Minute, "all letters came home", func() bool { return is.done.Load() == 3 })
	})
}

// An outage passes, and its letters come home without an operator, once. The run is as the file
// says, and the ledger and the API say why it began.
func TestRules_BringLettersHomeAfterAnOutage(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 30)
		is.serve(serve.Config{RulesFile: rules(t, strings.Replace(with("rate: 7"), "window: 1m", "window: 90s", 1))})
		time.Sleep(5 * time.Minute)
		is.fail(1) // the outage goes on
		time.Sleep(9 * time.Minute)
		if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 {
			t.Errorf("nine minutes after the last failure there is %+v", runs)
		}
		is.broken.Store(false)
		is.within(10*time.Minute, "the rule's run has ended", func() bool {
			history := ask[[]api.RuleEvent](is, "/rules/outage/history")
			return len(history) == 1 && history[0].End == "done"
		})
		run, decided := ask[[]api.Run](is, "/runs")[0], ask[[]api.RuleEvent](is, "/rules/outage/history")[0]
		if run.Pace.Rate != 7 || run.Pace.WindowMs != 90_000 || run.By != "rule outage" || run.State != "done" || run.Counts.Succeeded != 31 {
			t.Errorf("the run is %+v", run)
		}
		const why = "no letter has failed for 10m"
		if decided.What != "redrive" || decided.Run != run.ID || decided.Why != why || run.Why != why || is.reasons()[run.ID] != why {
			t.Errorf("decided was %+v, in the ledger %v, of the run %+v", decided, is.reasons(), run)
		}
		time.Sleep(time.Hour)
		if runs := ask[[]api.Run](is, "/runs"); len(runs) != 1 || is.done.Load() != 31 {
			t.Errorf("an hour later: %+v, and %d records were handled", runs, is.done.Load())
		}
	})
}

// A bug stays. No record goes out more often than the rule allows, however often letters of it come
// back, and also when the bug is fixed in the end.
func TestRules_MaxReplaysBoundsHowOftenARecordGoesOut(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.serve(serve.Config{RulesFile: rules(t, strings.Replace(often, "max-wait: 40m", "max-wait: 10m", 1))})
		time.Sleep(80 * time.Minute)
		each, all := is.called()
		for offset, n := range each {
			if n != 1+2 {
				t.Errorf("record %d was handled %d times", offset, n)
			}
		}
		is.broken.Store(false)
		time.Sleep(25 * time.Minute)
		if _, now := is.called(); len(each) != 3 || now != all {
			t.Errorf("%d calls were made for %v, then %d", all, each, now)
		}
	})
}

// A bug stays, and a canary fails. Nothing more moves until the wait is over, which doubled, and
// then one letter moves, each time another one: so one may still be tried when the bug is fixed,
// and closes the circuit. What it was tried for is in the ledger and in the API.
func TestRules_AfterAFailedCanaryNothingMovesForTheDoubledWait(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		const letters = 5
		is := outageAt(t, k, letters)
		is.serve(serve.Config{RulesFile: rules(t, often)})
		on := func() api.RuleOnTopic { return ask[[]api.Rule](is, "/rules")[0].On[0] }
		sent := func() int {
			_, all := is.called()
			return all - letters
		}
		time.Sleep(5 * time.Minute)
		is.within(5*time.Minute, "the circuit opens", func() bool { return on().Open })
		for i, wait := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 40 * time.Minute} {
			until := *on().Until
			if left := time.Until(until); left > wait || left < wait-time.Minute {
				t.Fatalf("after %d letters the circuit is open for %v, want %v", sent(), left, wait)
			}
			for left := time.Until(until); left > 0; left = time.Until(until) {
				if n := sent(); n != i+1 {
					t.Fatalf("%d letters went out, %v before the end of the wait of %v; want %d", n, left, wait, i+1)
				}
				time.Sleep(min(left, time.Minute))
			}
			is.within(time.Minute, "one letter is tried", func() bool { return sent() > i+1 })
			is.within(time.Minute, "the circuit is open again", func() bool {
				now := on()
				return now.Open && now.Until.After(until)
			})
			if n := sent(); n != i+2 {
				t.Fatalf("%d letters went out after the wait of %v, want one", n-i-1, wait)
			}
			tried, why := ask[[]api.RuleEvent](is, "/rules/outage/history")[0], fmt.Sprintf("the circuit was open for %s: one letter is tried", duration.Short(wait))
			if run := ask[api.Run](is, "/topics/orders.dlq/runs/"+tried.Run); tried.What != "canary" || tried.Why != why || run.Counts.Selected != 1 || run.Why != why || is.reasons()[tried.Run] != why {
				t.Errorf("decided was %+v, in the ledger %q, of the run %+v", tried, is.reasons()[tried.Run], run)
			}
		}
		is.broken.Store(false)
		is.within(time.Hour, "all letters came home", func() bool { return is.done.Load() == letters })
		is.within(5*time.Minute, "the circuit is closed", func() bool {
			history := ask[[]api.RuleEvent](is, "/rules/outage/history")
			return !on().Open && on().Letters == 0 && history[0].What == "redrive" && history[0].End == "done" && history[1].What == "canary" && history[1].End == "done"
		})
	})
}
