package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
	"github.com/sidingkafka/siding/serve"
	"github.com/sidingkafka/siding/serve/api"
)

// retriedAt is a broker with a service of orders that retries twice, after 5 s and after 45 s.
func retriedAt(t *testing.T, k *consumertest.Kafka) *station {
	t.Helper()
	is := &station{t: t, k: k}
	k.CreateTopic("orders", 1)
	k.Run(consumer.Config{
		Group: "billing", Topics: []string{"orders"},
		Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 45 * time.Second}, MaxAttempts: 3, Breaker: consumer.Breaker{Off: true}},
		Handler: func(context.Context, *kgo.Record) error {
			if is.broken.Load() {
				return classify.Retryable(classify.As(errors.New("service unavailable"), "http.503"))
			}
			return nil
		},
	})
	return is
}

// dies lets a record fail until it is a dead letter.
func (is *station) dies() {
	is.t.Helper()
	is.broken.Store(true)
	for _, r := range is.k.Produce(&kgo.Record{Topic: "orders", Value: []byte("v")}) {
		is.k.DeadLettered(r, headers.ReasonExhausted)
	}
}

// metric returns the value of a series of orders.dlq as /metrics has it; empty if there is none.
func (is *station) metric(name, more string) string {
	line := name + `{messaging_destination_name="orders.dlq"` + more + `} `
	for text := range strings.Lines(get(is.t, is.Server, "/metrics")) {
		if value, ok := strings.CutPrefix(text, line); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ends starts a run of all letters over the API, and returns how it ended.
func (is *station) ends() (run api.Run) {
	is.t.Helper()
	if code := is.ask(http.MethodPost, "/topics/orders.dlq/runs", "{}", &run); code != http.StatusAccepted {
		is.t.Fatalf("a run begins: %d", code)
	}
	path := "/topics/orders.dlq/runs/" + run.ID
	is.within(10*time.Minute, "the run ended", func() bool { run = ask[api.Run](is, path); return run.Ended != nil })
	return run
}

// rewrites writes the record of a run again, with changes.
func (is *station) rewrites(run string, change func(record map[string]any)) {
	l := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", is.k.Opts()...)
	var record map[string]any
	if err := l.Read(context.Background(), nil, nil); err != nil {
		is.t.Error(err)
	} else if err := json.Unmarshal(l.Runs()[run], &record); err != nil {
		is.t.Error(err)
	}
	change(record)
	text, err := json.Marshal(record)
	if err != nil {
		is.t.Error(err)
	}
	is.k.Produce(ledgerrecord.Run("orders.dlq.ledger", run, text))
}

// dates moves the times of a run that ended, as those of a clock that is wrong.
func (is *station) dates(run string, wrong time.Duration) {
	is.t.Helper()
	is.rewrites(run, func(record map[string]any) {
		for _, key := range []string{"startedAt", "at", "endedAt"} {
			at, err := time.Parse(time.RFC3339Nano, record[key].(string))
			if err != nil {
				is.t.Fatal(err)
			}
			record[key] = at.Add(wrong)
		}
	})
	time.Sleep(20 * time.Second)
}

// A run aborted, since its canary failed again and waited in a retry topic. What became of the
// canary was not recorded until an operator planned the next run: the metrics had the success of
// the run before, and no receiver was notified. Now the owner of the topic notifies at once, and
// records the outcome by the clock. The clock of the machine on which the run before began was fast
// by ten minutes: this one is the last run all the same.
func TestServer_ARunThatFailsIsSeen(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		is := retriedAt(t, k)
		is.dies()
		is.serve(serve.Config{Refresh: soonRefreshed})
		is.knowsTheLetter()
		is.broken.Store(false)
		first := is.ends()
		if first.State != "done" {
			t.Fatalf("the first run is %+v", first)
		}
		is.within(time.Minute, "the first run succeeded", func() bool { return is.metric("siding_redrive_success_ratio", "") == "1" })
		is.dates(first.ID, 10*time.Minute)
		is.dies()
		is.knowsTheLetter()
		run := is.ends()
		if run.State != "aborted" || run.Counts.Retrying != 1 {
			t.Fatalf("the second run is %+v", run)
		}
		time.Sleep(20 * time.Second) // two looks of the server
		if got := is.metric("siding_redrive_success_ratio", ""); got != "0" {
			t.Errorf("the canary waits to be retried, and the success of the last run is %q, want 0", got)
		}
		if n := is.log.count("alert=redrive-fails severity=warn text=\"run " + run.ID + " of "); n != 1 {
			t.Errorf("the run aborted, and people were notified %d times, want once", n)
		}
		time.Sleep(2 * time.Minute) // the canary is a dead letter after two more attempts
		failed := is.metric("siding_redrive_outcomes_total", `,siding_letter_state="failed"`)
		if got := is.metric("siding_redrive_success_ratio", ""); got != "0" || failed != "1" {
			t.Errorf("the canary is a dead letter again: the success is %q, want 0, and the outcomes have %q failed, want 1", got, failed)
		}
	})
}
