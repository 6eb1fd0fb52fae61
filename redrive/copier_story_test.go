package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// Trap 19: a dead letter is copied back with its headers and gets no retries, since they are used
// up.
//
// The second dead letter of a record said nothing of its first life: when it failed first, and how.
func TestCopier_ASecondDeadLetterTellsTheWholeStory(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, target := range map[string]redrive.Target{"by a retry topic": {}, "by the source": {Topic: "orders"}} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			k.CreateTopic("orders", 1)
			calls := 0
			k.Run(consumer.Config{
				Group: "billing", Topics: []string{"orders"},
				Handler: func(context.Context, *kgo.Record) error {
					calls++
					return classify.Retryable(fmt.Errorf("call %d: card 4111, 50 %% off\n for you", calls))
				},
				ErrorText: func(err error) string { return strings.ReplaceAll(err.Error(), "4111", "…") },
				Policy: consumer.Policy{
					Tiers: []time.Duration{5 * time.Second, 30 * time.Second}, MaxAge: time.Hour, Immediate: consumer.Immediate{Attempts: 1},
				},
			})
			bad := k.Produce(&kgo.Record{Topic: "orders", Value: []byte("x")})[0]
			first := k.DeadLettered(bad, headers.ReasonExhausted)
			runs := func(m headers.Meta) (all []string) {
				for _, a := range m.History {
					text := fmt.Sprint(a.Number, ".", a.Run, " ", a.Verdict, " ", a.Message)
					if a.Class != m.Class || a.At.Before(m.FirstFailedAt) || a.At.After(m.FailedAt) {
						t.Errorf("%s: class %s at %v", text, a.Class, a.At)
					}
					all = append(all, text)
				}
				return all
			}
			says := func(n int) string { return fmt.Sprintf("retry call %d: card …, 50 %% off\n for you", n) }
			want := []string{"1.1 " + says(1), "1.2 " + says(2), "2.0 " + says(3), "3.0 " + says(4)}
			if d := cmp.Diff(want, runs(first)); d != "" {
				t.Fatalf("the first life (-want +got):\n%s", d)
			}

			time.Sleep(2 * time.Hour) // longer than its retries may take
			r := redriver(t, k)
			redriveOnce := func(maxAttempts int) (headers.Meta, time.Time) {
				t.Helper()
				p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: target, MaxAttempts: maxAttempts})
				began := time.Now().Truncate(time.Millisecond)
				stopped(t, r, p, redrive.Pace{}, 0) // a run keeps the bound when it is resumed
				var failed *redrive.FailedAgainError
				if _, err := r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)); !errors.As(err, &failed) {
					t.Fatalf("the run ended with %v", err)
				}
				time.Sleep(3 * time.Minute)
				all := on(t, k, "orders.dlq")
				return metaOf(t, all[len(all)-1]), began
			}
			second, began := redriveOnce(2)
			if target.Topic == "" { // in-place retries are for the source only
				want = append(want, "1.0 "+says(5), "2.0 "+says(6))
			} else {
				want = append(want, "1.1 "+says(5), "1.2 "+says(6), "2.0 "+says(7))
			}
			if d := cmp.Diff(want, runs(second)); d != "" {
				t.Errorf("both lives (-want +got):\n%s", d)
			}
			if !second.FirstFailedAt.Equal(first.FirstFailedAt) || second.Redrive.At.Before(began) || second.Redrive.At.After(second.FailedAt) {
				t.Errorf("it failed first at %v, and was redriven at %v; want %v, and %v or later", second.FirstFailedAt, second.Redrive.At, first.FirstFailedAt, began)
			}
			if second.Attempts != 2 || second.Redrive.MaxAttempts != 2 || second.Reason != headers.ReasonExhausted || second.Redrive.Count != 1 {
				t.Errorf("the second letter has %+v", second)
			}
			// The bound is that of the run, not of the record.
			third, _ := redriveOnce(0)
			if third.Attempts != 3 || third.Redrive.MaxAttempts != 0 || third.Redrive.Count != 2 || third.Redrive.At.Before(second.FailedAt) || len(third.History) < 9 {
				t.Errorf("the third letter has %+v", third)
			}
			if !slices.Equal(runs(third)[:len(want)], want) {
				t.Errorf("the third letter has the history %q, want it to begin with %q", runs(third), want)
			}
			// A bound above the policy's raises it, for these letters alone.
			if fourth, _ := redriveOnce(5); fourth.Attempts != 5 || fourth.Reason != headers.ReasonExhausted {
				t.Errorf("the fourth letter has %d attempts and reason %s, want 5, exhausted", fourth.Attempts, fourth.Reason)
			}
		})
	}
}

// A letter that fits its target without its history went back while histories stayed behind; it
// still does.
func TestCopier_AHistoryThatDoesNotFitStaysBehind(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]redrive.Target{"on a retry topic": {}, "on the source": {Topic: "orders"}} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			letters(t, k, 3, succeeding)
			topic := "orders.retry.5s"
			if target.Topic != "" {
				topic = target.Topic
			}
			k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.MessageTooLarge, Count: -1, When: writes("history=")})
			r := redriver(t, k, kgo.ProducerBatchCompression(kgo.NoCompression()))
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: target})
			succeeds(t, 3)(r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, nil)))
			copies := 0
			for _, c := range on(t, k, topic) {
				h, ok := headers.ParseSource(c.Headers, "orders.dlq")
				if target.Topic == "" { // has all headers of a copy, unlike a source record
					var err error
					h, err = headers.Parse(c.Headers)
					ok = err == nil && h.Redrive.Count > 0
				}
				if !ok {
					continue // one that was not redriven
				}
				if copies++; len(h.History) != 0 || h.FirstFailedAt.IsZero() {
					t.Errorf("a copy has %+v", h)
				}
			}
			if copies != 3 {
				t.Errorf("%d copies were found, want 3", copies)
			}
		})
	}
}

// A run's bound is checked before anything is read.
func TestSelection_ABoundBelowOneIsAnError(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		r := redriver(t, k)
		for _, n := range []int{-1, headers.MaxRedriveAttempts + 1} {
			_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", MaxAttempts: n})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("redrive: orders.dlq: MaxAttempts is %d: at least 1", n)) {
				t.Errorf("MaxAttempts %d: %v", n, err)
			}
		}
	})
}

// A run made its copies, and waited long for the outcome of the canary before it sent them. If
// they were redriven when they were made, their retries would be over at the first failure.
func TestTransaction_TheRedriveIsWhenTheCopyIsSent(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	for name, topic := range map[string]string{"to a retry topic": "", "to the source": "orders"} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			k.CreateTopic("orders", 1)
			var s switched
			s.set(failing("tax"))
			cfg := consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{
				Tiers: []time.Duration{5 * time.Second, 30 * time.Second}, MaxAge: time.Minute,
			}}
			service := k.Run(cfg)
			bad := k.Produce(records(5, "x")...)
			for _, r := range bad {
				k.DeadLettered(r, headers.ReasonTerminal)
			}
			if err := service.Stop(); err != nil {
				t.Fatal(err)
			}
			s.set(func(ctx context.Context, r *kgo.Record) error {
				// the first is the canary, which lay on its target all the time
				if f := consumer.DeliveryOf(ctx, r); f.Attempt == 1 && f.Original.Offset > 0 {
					return classify.Retryable(errors.New("busy"))
				}
				return nil
			})
			r := redriver(t, k)
			p := planOf(t, r, redrive.Selection{Topic: "orders.dlq", Target: redrive.Target{Topic: topic, Wait: true}})
			ended := make(chan error, 1)
			go func() {
				_, err := r.Run(t.Context(), p, ann(redrive.Pace{Tolerate: 10, Window: 2 * time.Minute}, nil))
				ended <- err
			}()
			time.Sleep(5 * time.Minute)
			k.Run(cfg)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := len(on(t, k, "orders.dlq")); n != 5 {
				t.Errorf("%d letters, want the 5 that were there: none of them expired", n)
			}
		})
	}
}
