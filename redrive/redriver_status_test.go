package redrive_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// asked is the results of Status and Runs, which write nothing.
func asked(t *testing.T, k *consumertest.Kafka, r *redrive.Redriver, id string) redrive.Outcome {
	t.Helper()
	topics := []string{"orders.dlq", "orders.dlq.ledger", "orders.retry.5s", "orders.retry.30s", "orders"}
	ends := func() (all []int64) {
		for _, topic := range topics {
			all = append(all, k.Cluster.PartitionInfo(topic, 0).HighWatermark)
		}
		return all
	}
	before := ends()
	o, err := r.Status(t.Context(), "orders.dlq", id)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := r.Runs(t.Context(), "orders.dlq")
	if err != nil || len(runs) != 1 {
		t.Fatalf("the runs are %+v, %v", runs, err)
	}
	for i, end := range ends() {
		if end != before[i] {
			t.Errorf("%d records were written to %s", end-before[i], topics[i])
		}
	}
	if a, b := runs[0], o; a.ID != id || a.State != b.State || a.Owner != b.Owner || !a.Started.Equal(b.Started) || a.Counts.Selected != b.Counts.Selected {
		t.Errorf("it is %+v in the list, and %+v by itself", a, b)
	}
	return o
}

func TestStatus_FindsOutcomesItself(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *redrive.Redriver, string){
		"whose process is gone": func(*testing.T, *redrive.Redriver, string) {},
		"that was aborted": func(t *testing.T, r *redrive.Redriver, id string) {
			if err := r.Abort(t.Context(), "orders.dlq", id, byAnn); err != nil {
				t.Fatal(err)
			}
		},
	} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			release := make(chan struct{})
			letters(t, k, 40, func(_ context.Context, r *kgo.Record) error {
				<-release
				switch r.Offset % 4 {
				case 1:
					return classify.Terminal(classify.As(errors.New("no"), "sku"))
				case 2:
					return classify.Discard(errors.New("not ours"))
				case 3:
					return classify.Retryable(errors.New("busy"))
				}
				return nil
			})
			r, p := planned(t, k)
			stopped(t, r, p, redrive.Pace{Canary: -1, Rate: -1}, 40)
			end(t, r, p.ID)
			if c := asked(t, k, r, p.ID).Counts; c.Sent != 40 || c.Pending != 40 || c.Selected != 40 {
				t.Errorf("before anything ran it is %+v", c)
			}
			close(release)
			time.Sleep(4 * time.Second)
			if c := asked(t, k, r, p.ID).Counts; c.Sent != 40 || c.Succeeded != 10 || c.Failed != 10 || c.FailedByClass["sku"] != 10 || c.Discarded != 10 || c.Pending != 10 || c.Retrying != 10 {
				t.Errorf("after the first attempts it is %+v", c)
			}
			time.Sleep(10 * time.Minute)
			if c := asked(t, k, r, p.ID).Counts; c.Sent != 40 || c.Failed != 20 || c.Pending != 0 || c.Discarded != 10 || c.Succeeded != 10 {
				t.Errorf("at the end it is %+v", c)
			}
		})
	}
}

// Only the run's record has the letters that were not sent, and why: the ledger has no entries
// about them.
func TestStatus_KeepsSkippedLetters(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 30, succeeding)
		r, p := planned(t, k)
		k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.InvalidRecord, Count: -1})
		var messages []string
		skipped := redrive.Counts{Skipped: map[string]int64{redrive.SkippedRefused: 30}}
		ends(t, skipped)(r.Run(t.Context(), p, ann(redrive.Pace{}, func(e redrive.Event) {
			if strings.Contains(e.Message, "stay") {
				messages = append(messages, e.Message)
			}
		})))
		if len(messages) != 11 || messages[10] != "more letters stay: the counts of skipped letters have them" {
			t.Errorf("it reports %d lines of letters: %q", len(messages), messages)
		}
		ends(t, skipped)(asked(t, k, r, p.ID), nil)
	})
}

func TestStatus_OfAMissingRunIsAnError(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 1, nil)
		r := redriver(t, k)
		for what, do := range map[string]func(topic, id string) error{
			"status": func(topic, id string) error { _, err := r.Status(t.Context(), topic, id); return err },
			"resume": func(topic, id string) error {
				_, err := r.Resume(t.Context(), topic, id, ann(redrive.Pace{}, nil))
				return err
			},
			"abort": func(topic, id string) error { return r.Abort(t.Context(), topic, id, byAnn) },
		} {
			for _, id := range []string{"none", "", "x/selection/0"} {
				if err := do("orders.dlq", id); !errors.Is(err, redrive.ErrNoRun) || !strings.Contains(err.Error(), "orders.dlq") {
					t.Errorf("%s %q: %v", what, id, err)
				}
			}
			if err := do("bills.dlq", "none"); err == nil || errors.Is(err, redrive.ErrNoRun) || !strings.Contains(err.Error(), "bills.dlq") {
				t.Errorf("%s of a topic that there is not: %v", what, err)
			}
		}
		if runs, err := r.Runs(t.Context(), "orders.dlq"); err != nil || len(runs) != 0 {
			t.Errorf("the runs are %v, %v", runs, err)
		}
	})
}

// The record of a stopped run has the state in which it stopped.
func TestStatus_ShowsThatARunWasStopped(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 40, succeeding)
		r, p := planned(t, k)
		o := stopped(t, r, p, redrive.Pace{Canary: -1, Rate: 10, Ramp: -1}, 10)
		if at := time.Now(); o.State != redrive.Sending || o.Stopped.IsZero() || at.Sub(o.Stopped) > time.Second || !asked(t, k, r, p.ID).Stopped.Equal(o.Stopped) {
			t.Errorf("at %v it is %+v", at, o)
		}
		var while redrive.Outcome
		o, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, func(e redrive.Event) { while = e.Outcome }))
		if err != nil || !while.Stopped.IsZero() || !o.Stopped.IsZero() || !asked(t, k, r, p.ID).Stopped.IsZero() {
			t.Errorf("resumed it ended with %v, and %+v", err, o)
		}
	})
}
