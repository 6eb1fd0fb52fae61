package redrive_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// A permission that is taken away during a run does not come back by trying again. The run logged
// it every ten seconds, and waited until the permission was granted again. Now it ends unfinished
// and names the permission. An operator grants it and resumes.
func TestRun_WithoutAPermissionEndsAndCanBeResumed(t *testing.T) {
	t.Parallel()
	watch := func(req kmsg.Request) bool { return req.(*kmsg.FetchRequest).IsolationLevel == 0 }
	letters := func(req kmsg.Request) bool { return req.(*kmsg.FetchRequest).IsolationLevel == 1 }
	second := func(req kmsg.Request) bool {
		id := req.(*kmsg.ProduceRequest).TransactionID
		return id != nil && *id == "siding-redrive-orders.dlq-b"
	}
	// The error named the topic, which the user may write to.
	id := redrive.DeniedError{Operation: "WRITE", Resource: "transactional-id", Name: "siding-redrive-orders.dlq-b"}
	type row struct {
		fault kfake.Fault
		lacks redrive.DeniedError
	}
	for name, c := range cases.Some(map[string]row{
		"a retry topic":       {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.retry.30s", Err: kerr.TopicAuthorizationFailed, When: watch}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.retry.30s"}},
		"the ledger":          {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq.ledger", Err: kerr.TopicAuthorizationFailed, When: watch}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.dlq.ledger"}},
		"the letters":         {kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.dlq", Err: kerr.TopicAuthorizationFailed, When: letters}, redrive.DeniedError{Operation: "READ", Resource: "topic", Name: "orders.dlq"}},
		"to write":            {kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.TopicAuthorizationFailed}, redrive.DeniedError{Operation: "WRITE", Resource: "topic", Name: "orders.retry.5s"}},
		"to record":           {kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.TopicAuthorizationFailed}, redrive.DeniedError{Operation: "WRITE", Resource: "topic", Name: "orders.dlq.ledger"}},
		"its id, for copies":  {kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.retry.5s", Err: kerr.TransactionalIDAuthorizationFailed, When: second}, id},
		"its id, for entries": {kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.TransactionalIDAuthorizationFailed, When: second}, id},
		"the group":           {kfake.Fault{Keys: []kmsg.Key{kmsg.ConsumerGroupDescribe}, Err: kerr.GroupAuthorizationFailed}, redrive.DeniedError{Operation: "DESCRIBE", Resource: "group", Name: "billing"}},
	}, "the ledger") {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			fixed(t, k, 200)
			r, p := planned(t, k)
			c.fault.Count = -1
			var f *kfake.FaultHandle
			if c.lacks.Name == "orders.dlq" { // letters are read ahead
				f = k.Cluster.Fault(c.fault)
			}
			o, err := r.Run(within(t, 10*time.Minute), p, ann(redrive.Pace{}, func(e redrive.Event) {
				if f == nil && e.State == redrive.Sending && e.Counts.Sent > 1 {
					f = k.Cluster.Fault(c.fault)
				}
			}))
			lacks(t, err, c.lacks.Operation, c.lacks.Resource, c.lacks.Name)
			if o.State.Finished() || o.Stopped.IsZero() && c.lacks.Operation != "WRITE" || o.Counts.Sent == 200 {
				t.Errorf("the outcome is %+v", o)
			}
			f.Remove()
			succeeds(t, 200)(r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil)))
		})
	}
}

// The cause that another process gives when it ends a run is kept in the run's record. Later
// refusals name the topic once.
func TestAbort_KeepsItsReasonAndIsFinal(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		fixed(t, k, 100)
		r, p := planned(t, k)
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{Canary: -1}, first(sentOver(0), func() {
			go func() {
				if err := r.Abort(t.Context(), "orders.dlq", p.ID, byAnn); err != nil {
					t.Error(err)
				}
			}()
		})))
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
		_, err = r.Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, nil))
		if want := "redrive: orders.dlq: run " + p.ID + " is aborted: it cannot be resumed; begin a new run with the same options, which takes the letters that are open"; err == nil || err.Error() != want {
			t.Errorf("resume: %v, want %s", err, want)
		}
	})
}

// A finished run became an aborted one, if an abort came while the run recorded its end.
func TestAbort_ThatComesTooLateLeavesTheRunDone(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 3, succeeding)
		r, p := planned(t, k)
		done, aborted := make(chan struct{}), make(chan error, 1)
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{Window: 3 * time.Second, Ramp: -1}, first(watching, func() {
			k.Cluster.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
				k.Cluster.SleepControl(func() { <-done })
				return nil, nil, false
			})
			go func() {
				aborted <- r.Abort(context.Background(), "orders.dlq", p.ID, byAnn)
			}()
		})))
		close(done)
		succeeds(t, 3)(o, err)
		if err := <-aborted; err != nil {
			t.Errorf("the abort ended with %v", err)
		}
		if o, err := r.Status(t.Context(), "orders.dlq", p.ID); err != nil || o.State != redrive.Done || o.Cause != "" {
			t.Errorf("later it is %+v, %v", o, err)
		}
	})
}
