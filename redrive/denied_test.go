package redrive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/redrive"
)

// A right that is taken away while a run goes on does not come back by trying again: the run ends unfinished, says which one it is, and
// whoever has it granted resumes.
func TestARunThatMayNotWriteEndsAndCanBeResumed(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"orders.retry.5s", "orders.dlq.ledger"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				s := newService("tax")
				incident(t, k, s, 100, "tax")
				s.has()
				r := redriver(t, k)
				p := plan(t, r)
				var f *kfake.FaultHandle
				o, err := r.Run(t.Context(), p, redrive.Pace{Rate: 50}, func(e redrive.Event) {
					if f == nil && e.State == redrive.Sending && e.Counts.Sent > 1 {
						f = k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
					}
				})
				d, ok := errors.AsType[*redrive.DeniedError](err)
				if !ok || d.Operation != "WRITE" || d.Resource != "topic" || d.Name != topic {
					t.Fatalf("the run ended with %v", err)
				}
				if o.State.Finished() || o.Counts.Sent == 100 {
					t.Errorf("the outcome is %+v", o)
				}
				f.Remove()
				o, err = r.Resume(t.Context(), "orders.dlq", p.ID, nil)
				if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 100 {
					t.Errorf("the resumed run ended with %v, and %+v", err, o)
				}
			})
		})
	}
}

// It said so once in ten seconds, and waited for somebody to grant it again.
func TestARunThatMayNotLookEndsAndCanBeResumed(t *testing.T) {
	t.Parallel()
	watch := func(req kmsg.Request) bool { return req.(*kmsg.FetchRequest).IsolationLevel == 0 }
	letters := func(req kmsg.Request) bool { return req.(*kmsg.FetchRequest).IsolationLevel == 1 }
	for name, c := range map[string]struct {
		fault kfake.Fault
		lacks redrive.DeniedError
	}{
		"a retry topic": {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.30s", Err: kerr.TopicAuthorizationFailed, When: watch}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.retry.30s"}},
		"the ledger":    {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq.ledger", Err: kerr.TopicAuthorizationFailed, When: watch}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.dlq.ledger"}},
		"the letters":   {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, When: letters}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.dlq"}},
		"the group":     {kfake.Fault{Keys: []kmsg.Key{kmsg.ConsumerGroupDescribe}, Err: kerr.GroupAuthorizationFailed}, redrive.DeniedError{Operation: "DESCRIBE", Resource: "group", Name: "billing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
				k.CreateTopic("orders", 3)
				s := newService("tax")
				incident(t, k, s, 200, "tax")
				s.has()
				r := redriver(t, k)
				p := plan(t, r)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				c.fault.Count = -1
				var f *kfake.FaultHandle
				if c.lacks.Name == "orders.dlq" { // letters are read ahead
					f = k.Cluster.Fault(c.fault)
				}
				o, err := r.Run(ctx, p, redrive.Pace{}, func(e redrive.Event) {
					if f == nil && e.State == redrive.Sending && e.Counts.Sent > 1 {
						f = k.Cluster.Fault(c.fault)
					}
				})
				d, ok := errors.AsType[*redrive.DeniedError](err)
				if !ok || d.Operation != c.lacks.Operation || d.Resource != c.lacks.Resource || d.Name != c.lacks.Name {
					t.Fatalf("the run ended with %v, and %+v", err, o)
				}
				if o.State.Finished() || o.Stopped.IsZero() || o.Counts.Sent == 200 {
					t.Errorf("the outcome is %+v", o)
				}
				f.Remove()
				o, err = r.Resume(t.Context(), "orders.dlq", p.ID, nil)
				if err != nil || o.State != redrive.Done || o.Counts.Succeeded != 200 {
					t.Errorf("the resumed run ended with %v, and %+v", err, o)
				}
			})
		})
	}
}

// The words of whoever ends a run from elsewhere are kept with it, and the topic is named once in what is refused afterwards.
func TestAnAbortKeepsWhyAndAFinishedRunIsNotResumed(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		k.CreateTopic("orders", 3)
		s := newService("tax")
		incident(t, k, s, 100, "tax")
		s.has()
		r := redriver(t, k)
		p := plan(t, r)
		asked := false
		_, err := r.Run(t.Context(), p, redrive.Pace{Canary: -1}, func(e redrive.Event) {
			if !asked && e.Counts.Sent > 0 {
				asked = true
				go func() {
					if err := r.Abort(t.Context(), "orders.dlq", p.ID); err != nil {
						t.Error(err)
					}
				}()
			}
		})
		if !errors.Is(err, redrive.ErrTaken) || strings.Count(err.Error(), "orders.dlq") != 1 {
			t.Errorf("the run ended with %v", err)
		}
		o, err := r.Status(t.Context(), "orders.dlq", p.ID)
		if err != nil || o.State != redrive.Aborted || !strings.HasSuffix(o.Cause, ": JIRA-1") {
			t.Errorf("the status is %+v, %v", o, err)
		}
		runs, err := r.Runs(t.Context(), "orders.dlq")
		if err != nil || len(runs) != 1 {
			t.Fatalf("the runs are %+v, %v", runs, err)
		}
		if c := runs[0].Counts; c.Sent == 0 || c.Sent != c.Succeeded+c.Failed+c.Pending {
			t.Errorf("what was sent and what became of it is not the same: %+v", c)
		}
		_, err = r.Resume(t.Context(), "orders.dlq", p.ID, nil)
		if want := "redrive: orders.dlq: run " + p.ID + " is aborted: there is nothing to resume"; err == nil || err.Error() != want {
			t.Errorf("resume: %v, want %s", err, want)
		}
	})
}

// A run that was done became one that was aborted, with the cause of whoever came while it wrote that down.
func TestAnAbortThatComesTooLateLeavesTheRunDone(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		var s switched
		letters(t, k, &s, 3)
		s.set(succeeding)
		r := redriver(t, k)
		p := plan(t, r)
		done, aborted := make(chan struct{}), make(chan error, 1)
		var once sync.Once
		o, err := r.Run(t.Context(), p, redrive.Pace{Window: 3 * time.Second, Ramp: -1}, func(e redrive.Event) {
			if e.State != redrive.Watching {
				return
			}
			once.Do(func() {
				k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
					k.Cluster.SleepControl(func() { <-done })
					return nil, nil, false
				})
				go func() { aborted <- r.Abort(context.Background(), "orders.dlq", p.ID) }()
			})
		})
		close(done)
		if err != nil || o.State != redrive.Done {
			t.Errorf("the run ended with %v, and %+v", err, o)
		}
		if err := <-aborted; err != nil {
			t.Errorf("the abort ended with %v", err)
		}
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.State != redrive.Done || o.Cause != "" {
			t.Errorf("later it is %+v, %v", o, err)
		}
	})
}
