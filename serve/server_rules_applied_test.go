package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/internal/commitmark"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// service runs a consumer of orders that fails while broken is set.
func (c *cluster) service(broken *atomic.Bool, done *atomic.Int64) {
	c.T.Helper()
	service, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: c.Opts, Logger: slog.New(slog.DiscardHandler),
		Policy: consumer.Policy{Tiers: []time.Duration{200 * time.Millisecond}, Breaker: consumer.Breaker{Off: true}},
		Handler: func(context.Context, *kgo.Record) error {
			if broken.Load() {
				return classify.Terminal(classify.As(errors.New("service unavailable"), "http.503"))
			}
			done.Add(1)
			return nil
		},
	})
	if err != nil {
		c.T.Fatal(err)
	}
	beside(c.T, service.Run)
}

// redrive runs a redrive of all open letters of a topic, and returns how it ended.
func (c *cluster) redrive(topic string) redrive.Outcome {
	c.T.Helper()
	r, err := redrive.New(redrive.Config{Kafka: c.Opts})
	if err != nil {
		c.T.Fatal(err)
	}
	plan, err := r.Plan(c.T.Context(), redrive.Selection{Topic: topic})
	if err != nil {
		c.T.Fatal(err)
	}
	out, err := r.Run(c.T.Context(), plan, redrive.RunOptions{By: "ada", Pace: redrive.Pace{Window: time.Second}})
	var failed *redrive.FailedAgainError
	if err != nil && !errors.As(err, &failed) {
		c.T.Fatal(err)
	}
	return out
}

func rules(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const hourly = "rules: [{name: outage, topics: '*', classes: [http.*], cool-down: 10m, window: 1m, wait: 1h, max-wait: 4h}]"

// suspended holds a client of a server up, as if its process were suspended, at the next request of
// a kind after begin.
type suspended struct {
	key           int16
	begin, resume chan struct{}
	at            sync.Once
	there         chan struct{}
}

func (s *suspended) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	select {
	case <-s.begin:
	default:
		return
	}
	if key == s.key {
		s.at.Do(func() {
			close(s.there)
			<-s.resume
		})
	}
}

// A rule decided to begin a run. Before its claim its server was suspended, and what came into the
// ledger meanwhile forbids the run.
func TestServer_ARuleBeginsNothingAfterItsServerWasSuspended(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(is *station, file string)
		why       string
	}{
		"the rule was paused": {func(is *station, _ string) {
			if code := is.ask(http.MethodPost, "/rules/outage/topics/orders.dlq/pause", `{"why":"deploying"}`, nil); code != http.StatusOK {
				is.t.Errorf("pausing: %d", code)
			}
		}, "the rule is paused"},
		"letters failed": {func(is *station, _ string) { is.fail(1) }, "the last failure was"},
		"another server opened the circuit": {func(is *station, _ string) {
			is.note("rule/outage/state", map[string]any{"v": 1, "opened": time.Now(), "until": time.Now().Add(time.Hour), "wait": time.Hour, "why": "it failed again"})
		}, "the circuit is open until"},
		"another run has begun and was aborted": {func(is *station, _ string) {
			runs := redriverAt(is)
			plan, err := runs.Plan(is.t.Context(), redrive.Selection{Topic: "orders.dlq"})
			if err != nil {
				is.t.Fatal(err)
			}
			is.note("rule/outage/decision/0946684800000-redrive", map[string]any{"v": 1, "at": time.Now(), "do": "redrive", "run": plan.ID})
			if _, err := runs.Run(is.t.Context(), plan, redrive.RunOptions{By: "rule outage"}); err == nil {
				is.t.Error("the run of the other server should abort")
			}
			time.Sleep(12 * time.Minute) // since the failure of its canary
		}, "the circuit is open until"},
		"a group holds the source": {func(is *station, _ string) {
			is.letterFor("mail", "http.503", time.Now().Add(-time.Hour))
			commits(is.t, is.writer(), "mail", "orders", commitmark.Guard{State: commitmark.Strained, Since: time.Now()})
		}, "group mail runs records of orders in a strain"},
		"its filter was changed": {func(is *station, file string) {
			if err := os.WriteFile(file, []byte(with("where: attempts > 9")), 0o600); err != nil {
				is.t.Error(err)
			}
			is.within(time.Minute, "the file is read", func() bool { return ask[[]api.Rule](is, "/rules")[0].Filter.Where != "" })
		}, "its filter has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 5)
				s := &suspended{key: kmsg.InitProducerID.Int16(), begin: make(chan struct{}), resume: make(chan struct{}), there: make(chan struct{})}
				decided := sync.OnceFunc(func() { close(s.begin) })
				k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
					for _, topic := range r.(*kmsg.ProduceRequest).Topics {
						for _, p := range topic.Partitions {
							if bytes.Contains(p.Records, []byte("/decision/")) {
								decided()
							}
						}
					}
					return true
				}})
				file := rules(t, hourly)
				is.serve(serve.Config{RulesFile: file}, kgo.WithHooks(s), kgo.ProducerBatchCompression(kgo.NoCompression()))
				<-s.there
				before := len(ask[[]api.Run](is, "/runs"))
				test.meanwhile(is, file)
				runs, err := redriverAt(is).Runs(t.Context(), "orders.dlq")
				if err != nil {
					t.Fatal(err)
				}
				close(s.resume)
				var last api.RuleEvent
				is.within(time.Minute, "the decision is withdrawn", func() bool {
					for _, e := range ask[[]api.RuleEvent](is, "/rules/outage/history") {
						if strings.HasPrefix(e.End, "not begun") {
							last = e
						}
					}
					return last.End != ""
				})
				if !strings.Contains(last.End, test.why) {
					t.Errorf("it ended as %q, want that %s", last.End, test.why)
				}
				now, err := redriverAt(is).Runs(t.Context(), "orders.dlq")
				if err != nil || len(now) != len(runs) {
					t.Errorf("there were %d runs, then %d, and are %+v, %v", before, len(runs), now, err)
				}
			})
		})
	}
}

func redriverAt(is *station) *redrive.Redriver {
	is.t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: is.k.Opts()})
	if err != nil {
		is.t.Fatal(err)
	}
	return r
}

// note writes a note as another server does.
func (is *station) note(name string, value any) {
	is.t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		is.t.Fatal(err)
	}
	is.k.Produce(ledgerrecord.Run("orders.dlq.ledger", "serve/"+name, text))
}

// The clock of another server was wrong by hours when it opened the circuit. The server that owns
// the topic now waits as long as the rule says, neither longer nor shorter.
func TestRules_AWrongClockMovesNoCircuit(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for _, wrong := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
		t.Run(fmt.Sprint(wrong), func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.serve(serve.Config{RulesFile: rules(t, hourly)})
				time.Sleep(time.Minute) // it has looked
				opened := time.Now().Add(wrong)
				is.note("rule/outage/state", map[string]any{"v": 1, "opened": opened, "until": opened.Add(time.Hour), "wait": time.Hour, "why": "it failed again"})
				is.broken.Store(false)
				time.Sleep(58 * time.Minute)
				if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 {
					t.Errorf("the circuit was closed early, by %+v", runs)
				}
				is.within(10*time.Minute, "all letters came home", func() bool { return is.done.Load() == 3 })
			})
		})
	}
}

// An operator aborts the run of a rule: it is an abort, and opens the circuit.
func TestRules_AnAbortByHandOpensTheCircuit(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 30)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, strings.Replace(hourly, "window: 1m", "window: 20m", 1))})
		var runs []api.Run
		is.within(15*time.Minute, "a run goes on", func() bool {
			runs = ask[[]api.Run](is, "/runs")
			return len(runs) == 1
		})
		if code := is.ask(http.MethodPost, "/topics/orders.dlq/runs/"+runs[0].ID+"/abort", `{"why":"stop it"}`, nil); code != http.StatusOK {
			t.Fatalf("abort: %d", code)
		}
		is.within(time.Minute, "the circuit is open", func() bool { return ask[[]api.Rule](is, "/rules")[0].On[0].Open })
		var history []api.RuleEvent
		is.within(time.Minute, "the end is noted", func() bool {
			history = ask[[]api.RuleEvent](is, "/rules/outage/history")
			return len(history) == 1 && history[0].End != ""
		})
		if len(history) != 1 || !strings.HasPrefix(history[0].End, "aborted: aborted by local") || !strings.HasSuffix(history[0].End, ": stop it") {
			t.Errorf("the history is %+v", history)
		}
	})
}

// The first rule that fits a letter counts, also while it does nothing.
func TestRules_TheFirstThatFitsALetterCounts(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := outageAt(t, k, 3)
		is.broken.Store(false)
		is.serve(serve.Config{RulesFile: rules(t, "rules: [{name: slow, topics: '*', classes: [http.503], cool-down: 1h}, {name: quick, topics: '*', classes: ['*'], cool-down: 1m, window: 1m}]")})
		time.Sleep(50 * time.Minute)
		if runs := ask[[]api.Run](is, "/runs"); len(runs) > 0 {
			t.Errorf("the second rule began %+v", runs)
		}
		is.within(time.Hour, "the first rule brings them home", func() bool { return is.done.Load() == 3 })
	})
}

// No rule redrives a critical topic, unless the configuration says that it may, nor one of which
// the configuration says that none may.
func TestRules_LeaveManualTopicsToOperators(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	manual, may := true, false
	for name, test := range map[string]struct {
		topic serve.Topic
		home  bool
	}{
		"critical":         {serve.Topic{Match: "*", Criticality: serve.Critical}, false},
		"critical, allows": {serve.Topic{Match: "*", Criticality: serve.Critical, ManualOnly: &may}, true},
		"high":             {serve.Topic{Match: "*", Criticality: serve.High}, true},
		"minor, forbids":   {serve.Topic{Match: "*", Criticality: serve.Minor, ManualOnly: &manual}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				is := outageAt(t, k, 3)
				is.broken.Store(false)
				is.serve(serve.Config{RulesFile: rules(t, hourly), Topics: []serve.Topic{test.topic}})
				time.Sleep(20 * time.Minute)
				if home := is.done.Load() == 3; home != test.home {
					t.Errorf("%d letters came home", is.done.Load())
				}
				if got := ask[api.Topic](is, "/topics/orders.dlq"); got.ManualOnly == test.home {
					t.Errorf("the API shows %+v", got)
				}
			})
		})
	}
}
