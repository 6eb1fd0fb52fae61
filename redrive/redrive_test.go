package redrive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer"
	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive"
)

// service is a consumer that has a bug until it is fixed, and remembers what it did.
type service struct {
	bugs atomic.Pointer[map[string]bool] // error classes that its handler still has
	mu   sync.Mutex
	ran  map[string]int // by value: how often it was processed
}

func (s *service) handle(_ context.Context, r *kgo.Record) error {
	class, _, _ := strings.Cut(string(r.Value), ":")
	if (*s.bugs.Load())[class] {
		return classify.Terminal(classify.As(errors.New("cannot "+string(r.Value)), class))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[string(r.Value)]++
	return nil
}

func (s *service) has(bugs ...string) {
	m := map[string]bool{}
	for _, b := range bugs {
		m[b] = true
	}
	s.bugs.Store(&m)
}

func newService(bugs ...string) *service {
	s := &service{ran: map[string]int{}}
	s.has(bugs...)
	return s
}

func (s *service) config() consumer.Config {
	return consumer.Config{Group: "billing", Topics: []string{"orders"}, Handler: s.handle, Policy: consumer.Policy{Tiers: []time.Duration{5 * time.Second, 30 * time.Second}}}
}

// incident makes n dead letters of each class.
func incident(t *testing.T, k *consumertest.Kafka, s *service, n int, classes ...string) {
	t.Helper()
	incidentOf(k, s.config(), n, classes...)
}

func incidentOf(k *consumertest.Kafka, cfg consumer.Config, n int, classes ...string) {
	k.Run(cfg)
	var records []*kgo.Record
	for _, c := range classes {
		for i := range n {
			records = append(records, &kgo.Record{Topic: "orders", Key: []byte(fmt.Sprint(i)), Value: fmt.Appendf(nil, "%s:%d", c, i)})
		}
	}
	for _, r := range k.Produce(records...) {
		k.DeadLettered(r, headers.ReasonTerminal)
	}
}

func redriver(t *testing.T, k *consumertest.Kafka) *redrive.Redriver {
	t.Helper()
	r, err := redrive.New(redrive.Config{Kafka: k.Opts(), By: "ann", Why: "JIRA-1"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAFixedClassIsBroughtBackAndAllSucceed(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax", "sku")
		incident(t, k, s, 200, "tax", "sku")
		s.has("sku")
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Classes: []string{"tax"}}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Letters != 200 || p.ByClass["tax"] != 200 || p.Targets["orders.retry.5s"] != 200 {
			t.Errorf("the plan is %+v", p)
		}
		began := time.Now()
		o, err := r.Run(t.Context(), p, redrive.Pace{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := o.Counts
		if o.State != redrive.Done || c.Sent != 200 || c.Succeeded != 200 || c.Failed+c.Pending+c.Unknown+c.Discarded != 0 {
			t.Errorf("the outcome is %+v", o)
		}
		for i := range 200 {
			if n := s.ran[fmt.Sprintf("tax:%d", i)]; n != 1 {
				t.Errorf("record %d was processed %d times, want once", i, n)
			}
		}
		if d := time.Since(began); d < 30*time.Second || d > 90*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

func TestARunAbortsWhenItsClassFailsAgain(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 200, "tax")
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
		if err != nil {
			t.Fatal(err)
		}
		o, err := r.Run(t.Context(), p, redrive.Pace{}, nil)
		if _, ok := errors.AsType[*redrive.ReappearedError](err); !ok {
			t.Fatalf("got %v", err)
		}
		if o.State != redrive.Aborted || o.Counts.Sent != 1 {
			t.Errorf("the outcome is %+v", o)
		}
	})
}

// plan plans a run of all letters.
func plan(t *testing.T, r *redrive.Redriver) *redrive.Plan {
	t.Helper()
	p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reappeared checks that a run aborted itself, and says why.
func reappeared(t *testing.T, o redrive.Outcome, err error) string {
	t.Helper()
	r, ok := errors.AsType[*redrive.ReappearedError](err)
	if !ok {
		t.Fatalf("the run ended with %v, and %+v", err, o)
	}
	if o.State != redrive.Aborted || o.Cause != r.Cause {
		t.Errorf("the outcome is %+v, and the error %v", o, err)
	}
	return r.Cause
}

func TestNewTrafficThatFailsAbortsWithinTheWindowOnly(t *testing.T) {
	t.Parallel()
	for after, aborts := range map[time.Duration]bool{29 * time.Second: true, 31 * time.Second: false} {
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				s := newService("tax")
				incident(t, k, s, 3, "tax")
				s.has()
				r := redriver(t, k)
				var once sync.Once
				o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1}, func(e redrive.Event) {
					if e.State == redrive.Watching {
						once.Do(func() {
							time.AfterFunc(after-time.Second/2, func() {
								s.has("tax")
								k.Produce(&kgo.Record{Topic: "orders", Value: []byte("tax:new")})
							})
						})
					}
				})
				if !aborts {
					if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 3 {
						t.Errorf("the run ended with %v, and %+v", err, o)
					}
					return
				}
				if cause := reappeared(t, o, err); !strings.Contains(cause, "new traffic fails with tax") {
					t.Errorf("the cause is %q", cause)
				}
			})
		})
	}
}

func TestOtherClassesAndOtherGroupsAbortNoRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 100, "tax")
		s.has("sku")
		audit := newService("tax")
		cfg := audit.config()
		cfg.Group = "audit"
		k.Run(cfg)
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Groups: []string{"billing"}}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		o, err := r.Run(t.Context(), p, redrive.Pace{}, func(redrive.Event) {
			if n++; n < 20 {
				k.Produce(&kgo.Record{Topic: "orders", Value: []byte("sku:new")}, &kgo.Record{Topic: "orders", Value: []byte("tax:new")})
			}
		})
		if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 100 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
	})
}

func TestTwoOperatorsAtOnceAreOneRun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 100, "tax")
		s.has()
		// Neither has claimed before both have looked whether somebody else did.
		both := make(chan struct{})
		inits := 0
		k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
			k.Cluster.KeepControl()
			if inits++; inits == 1 {
				k.Cluster.SleepControl(func() {
					select {
					case <-both:
					case <-time.After(time.Minute):
						t.Error("the other one did not come so far")
					}
				})
			} else if inits == 2 {
				close(both)
			}
			return nil, nil, false
		})
		type result struct {
			o   redrive.Outcome
			err error
		}
		results := make(chan result)
		for range 2 {
			r := redriver(t, k)
			p := plan(t, r)
			go func() {
				o, err := r.Run(t.Context(), p, redrive.Pace{}, nil)
				results <- result{o, err}
			}()
		}
		done, refused := 0, 0
		for range 2 {
			switch res := <-results; {
			case res.err == nil && res.o.Counts.Succeeded == 100:
				done++
			default:
				if e, ok := errors.AsType[*redrive.RefusedError](res.err); ok && e.Reason == redrive.RefusedUnfinished && e.Run != nil {
					refused++
				} else {
					t.Errorf("a run ended with %v, and %+v", res.err, res.o)
				}
			}
		}
		if done != 1 || refused != 1 {
			t.Errorf("%d runs went through and %d were refused, want one of each", done, refused)
		}
		for v, n := range s.ran {
			if n != 1 {
				t.Errorf("%s was processed %d times", v, n)
			}
		}
	})
}

func TestARunThatIsResumedElsewhereGoesOnThereOnly(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 300, "tax")
		s.has()
		first, second := redriver(t, k), redriver(t, k)
		p := plan(t, first)
		half, lost := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			_, err := first.Run(t.Context(), p, redrive.Pace{}, func(e redrive.Event) {
				if e.Counts.Sent > 50 {
					once.Do(func() { close(half) })
				}
			})
			lost <- err
		}()
		<-half
		o, err := second.Resume(t.Context(), "orders.dlq", p.ID, func(e redrive.Event) {
			if e.Message != "" {
				t.Errorf("the first process disturbs the second: %s", e.Message)
			}
		})
		if err != nil || o.State != redrive.Done || o.Counts.Sent != 300 || o.Counts.Succeeded != 300 {
			t.Errorf("the resumed run ended with %v, and %+v", err, o)
		}
		if err := <-lost; !errors.Is(err, redrive.ErrTaken) {
			t.Errorf("the first process ended with %v", err)
		}
		for i := range 300 {
			if n := s.ran[fmt.Sprintf("tax:%d", i)]; n != 1 {
				t.Errorf("record %d was processed %d times, want once", i, n)
			}
		}
	})
}

// It was with its canary again, of all letters that it had sent.
func TestARunThatIsResumedDoesNotWaitForWhatWaitsInARetryTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var s switched
		letters(t, k, &s, 200)
		s.set(func(ctx context.Context, r *kgo.Record) error {
			if r.Offset%10 == 9 && consumer.FactsOf(ctx, r).Attempt == 1 {
				return classify.Retryable(classify.As(errors.New("busy"), "busy"))
			}
			return nil
		})
		r := redriver(t, k)
		p := plan(t, r)
		ctx, interrupt := context.WithCancel(t.Context())
		o, err := r.Run(ctx, p, redrive.Pace{Ramp: -1, TolerateShare: 1}, func(e redrive.Event) {
			if e.Counts.Sent > 50 && e.Counts.Retrying > 0 {
				interrupt()
			}
		})
		if !errors.Is(err, context.Canceled) || o.Counts.Sent >= 200 {
			t.Fatalf("the run ended with %v, and %+v", err, o)
		}
		resumed, sent := time.Now(), time.Duration(0)
		o, err = r.Resume(t.Context(), "orders.dlq", p.ID, func(e redrive.Event) {
			if e.Counts.Sent == 200 && sent == 0 {
				sent = time.Since(resumed)
			}
		})
		if err != nil || o.Counts.Sent != 200 || sent > 10*time.Second {
			t.Errorf("the run ended with %v after it had sent all within %v, and %+v", err, sent, o)
		}
	})
}

func TestAnAbortFromElsewhereStopsARun(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 300, "tax")
		s.has()
		first, second := redriver(t, k), redriver(t, k)
		p := plan(t, first)
		half, lost := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			_, err := first.Run(t.Context(), p, redrive.Pace{}, func(e redrive.Event) {
				if e.Counts.Sent > 50 {
					once.Do(func() { close(half) })
				}
			})
			lost <- err
		}()
		<-half
		if err := second.Abort(t.Context(), "orders.dlq", p.ID); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, redrive.ErrTaken) {
			t.Errorf("the run ended with %v", err)
		}
		time.Sleep(time.Minute)
		ran := len(s.ran)
		runs, err := second.Runs(t.Context(), "orders.dlq")
		if err != nil || len(runs) != 1 || runs[0].State != redrive.Aborted || ran > 150 {
			t.Errorf("the runs are %+v, %v; %d records ran", runs, err, ran)
		}
		if _, err := second.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"}); err != nil {
			t.Errorf("a new run after it: %v", err)
		}
	})
}

// Trap 23: a replay has no group and no ledger: nobody sees how far it is, and it reads what it wrote.
func TestARunSendsWhatWasOpenWhenItWasPlannedAndNothingOfWhatItMakes(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 100, "tax")
		r := redriver(t, k)
		p := plan(t, r)
		halfway := false
		o, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1, Tolerate: 1000}, func(e redrive.Event) {
			if runs, err := r.Runs(t.Context(), "orders.dlq"); err == nil && len(runs) == 1 {
				halfway = halfway || runs[0].Counts.Sent > 0 && runs[0].Counts.Sent < 100
			}
		})
		if c := o.Counts; err != nil || c.Sent != 100 || c.Failed != 100 || c.FailedByClass["tax"] != 100 {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
		if !halfway {
			t.Error("nobody could see how far it was")
		}
		if again := plan(t, r); again.Letters != 100 {
			t.Errorf("%d letters are open after all came back, want 100", again.Letters)
		}
	})
}

// Trap 24: a record goes round between its source and its dead-letter topic without end.
func TestARecordGoesRoundThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 1)
		s := newService("tax")
		incident(t, k, s, 5, "tax")
		r := redriver(t, k)
		for range 3 {
			if o, err := r.Run(t.Context(), plan(t, r), redrive.Pace{Canary: -1, Tolerate: 1000}, nil); err != nil || o.Counts.Failed != 5 {
				t.Fatalf("a run ended with %v, and %+v", err, o)
			}
		}
		_, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq"})
		if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != redrive.RefusedTooOften {
			t.Errorf("a fourth run is planned with %v", err)
		}
		if p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", MaxRedrives: -1}); err != nil || p.Letters != 5 {
			t.Errorf("without a limit it is planned with %v", err)
		}
	})
}

// Trap 26: the dead-letter topic is consumed to be handled, and nobody sees any more how much is in it.
func TestWhatIsOpenIsKnownAfterARunAndNothingIsTakenOutOfTheTopic(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax", "sku")
		incident(t, k, s, 100, "tax", "sku")
		s.has("sku")
		r := redriver(t, k)
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: "orders.dlq", Filter: dlq.Filter{Classes: []string{"tax"}}})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := r.Run(t.Context(), p, redrive.Pace{}, nil); err != nil || o.Counts.Succeeded != 100 {
			t.Fatalf("the run ended with %v, and %+v", err, o)
		}
		sum, err := dlq.NewLedger("orders.dlq", "orders.dlq.ledger", k.Opts()...).Summarize(t.Context(), dlq.Filter{}, dlq.Cursor{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if sum.Open != 100 || sum.Resolved != 100 || len(sum.Failures) != 1 || sum.Failures[0].Class != "sku" {
			t.Errorf("the summary is %+v", sum)
		}
	})
}
