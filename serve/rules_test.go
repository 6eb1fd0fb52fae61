package serve_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/redrive"
	"github.com/sidingkafka/siding/serve"
)

// service runs a consumer of orders that fails while broken is set.
func (c *cluster) service(broken *atomic.Bool, done *atomic.Int64) {
	c.t.Helper()
	service, err := consumer.New(consumer.Config{
		Group: "billing", Topics: []string{"orders"}, Kafka: c.opts, Logger: slog.New(slog.DiscardHandler),
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
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	c.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
}

// redrive runs a redrive of all open letters of a topic, and returns how it ended.
func (c *cluster) redrive(topic string) redrive.Outcome {
	c.t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: c.opts})
	if err != nil {
		c.t.Fatal(err)
	}
	plan, err := r.Plan(c.t.Context(), redrive.Selection{Topic: topic})
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := r.Run(c.t.Context(), plan, redrive.RunOptions{By: "ada", Pace: redrive.Pace{Window: time.Second}})
	var failed *redrive.FailedAgainError
	if err != nil && !errors.As(err, &failed) {
		c.t.Fatal(err)
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

// An outage passes, and its letters come home with nobody's hand.
func TestRules_BringLettersHomeAfterAnOutage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	var broken atomic.Bool
	var done atomic.Int64
	broken.Store(true)
	c.service(&broken, &done)
	for range 30 {
		c.cl.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}, nil)
	}
	s, _ := c.run(serve.Config{RulesFile: rules(t, "rules: [{name: outage, topics: '*', classes: [http.*], cool-down: 3s, window: 1s}]")})
	shows(t, s, `siding_dead_letters_open{error_type="http.503",messaging_destination_name="orders.dlq"} 30`)
	broken.Store(false)
	eventually(t, "all letters came home", func() bool { return done.Load() == 30 })
	shows(t, s, `siding_dead_letters_resolved{messaging_destination_name="orders.dlq",siding_letter_state="succeeded"} 30`)
	shows(t, s, `siding_redrive_outcomes_total{messaging_destination_name="orders.dlq",siding_letter_state="succeeded"} 30`)
	shows(t, s, `siding_redrive_success_ratio{messaging_destination_name="orders.dlq"} 1`)
	shows(t, s, `siding_redrive_rules{messaging_destination_name="orders.dlq",siding_rule_name="outage",siding_rule_state="closed"} 1`)
}

// A bug stays: after the canary nothing more moves.
func TestRules_ABugStopsThemAfterTheCanary(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "orders")
	var broken atomic.Bool
	var done atomic.Int64
	broken.Store(true)
	c.service(&broken, &done)
	for range 30 {
		c.cl.Produce(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("v")}, nil)
	}
	s, _ := c.run(serve.Config{RulesFile: rules(t, "rules: [{name: outage, topics: '*', classes: [http.*], cool-down: 2s, window: 1s, wait: 1h}]")})
	shows(t, s, `siding_redrive_runs{messaging_destination_name="orders.dlq",siding_run_state="aborted"} 1`)
	shows(t, s, `siding_redrive_rules{messaging_destination_name="orders.dlq",siding_rule_name="outage",siding_rule_state="open"} 1`)
	shows(t, s, `siding_redrive_rules{messaging_destination_name="orders.dlq",siding_rule_name="outage",siding_rule_state="closed"} 0`)
	shows(t, s, `siding_redrive_success_ratio{messaging_destination_name="orders.dlq"} 0`)
	time.Sleep(6 * time.Second)
	r, err := redrive.New(redrive.Config{Kafka: c.opts})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := r.Runs(t.Context(), "orders.dlq")
	if err != nil || len(runs) != 1 || runs[0].Counts.Sent != 1 || !strings.HasPrefix(runs[0].By, "rule outage") {
		t.Errorf("the runs are %+v, %v", runs, err)
	}
}
