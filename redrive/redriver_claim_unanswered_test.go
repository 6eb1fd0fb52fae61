package redrive_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/consumer/consumertest"
	"github.com/sidingkafka/siding/internal/cases"
	"github.com/sidingkafka/siding/redrive"
)

// unanswered has the nth end of a transaction from now on done, and what follows, and then answers
// it with an error.
func unanswered(t *testing.T, k *consumertest.Kafka, nth int64, follows func()) (faults *atomic.Int64) {
	t.Helper()
	cl := clientOf(t, k)
	var seen atomic.Int64
	faults = new(atomic.Int64)
	k.Cluster.ControlKey(kmsg.EndTxn.Int16(), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if seen.Add(1) != nth {
			return nil, nil, false // the one that is done in its place as well
		}
		faults.Add(1)
		end := req.(*kmsg.EndTxnRequest)
		again := *end
		k.Cluster.SleepControl(func() {
			resp, err := again.RequestWith(t.Context(), cl)
			if err == nil {
				err = kerr.ErrorForCode(resp.ErrorCode)
			}
			if err != nil {
				t.Errorf("it is not done: %v", err)
			}
			follows()
		})
		resp := end.ResponseKind().(*kmsg.EndTxnResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp, nil, true
	})
	return faults
}

// The first transaction of a run has its selection and its claim.
const claims = 1

// A claim was committed although its commit got an error as the answer. The run then reported that
// another process has an unfinished run.
func TestClaim_CountsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, nth := range map[string]int64{"the claim": claims, "what comes after": claims + 1} {
		virtual(t, name, func(t *testing.T, k *consumertest.Kafka) {
			fixed(t, k, 20)
			r, p := planned(t, k)
			faults := unanswered(t, k, nth, func() {})
			o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
			if succeeds(t, 20)(o, err); o.ID != p.ID || faults.Load() != 1 {
				t.Errorf("after %d faults the outcome is that of %s", faults.Load(), o.ID)
			}
			onTheirTargets(t, k, p.ID, 20)
			if runs, err := r.Runs(t.Context(), "orders.dlq"); err != nil || len(runs) != 1 {
				t.Errorf("the runs are %+v, %v", runs, err)
			}
		})
	}
}

// The ledger has too few replicas in sync. The run waited for it without a word.
func TestClaim_ReportsWhyItWaits(t *testing.T) {
	cases.Skip(t)
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		f := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlq.ledger", Err: kerr.NotEnoughReplicas, Count: -1})
		time.AfterFunc(time.Minute, f.Remove)
		began := time.Now()
		var said time.Duration
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, func(e redrive.Event) {
			if said == 0 && strings.Contains(e.Message, "the run is not claimed yet: a transaction of 2 records") {
				said = time.Since(began)
			}
		}))
		succeeds(t, 20)(o, err)
		if said == 0 || said > 15*time.Second {
			t.Errorf("it said that it waits after %v", said)
		}
	})
}

func TestClaim_ThatWasNotCommittedIsRepeated(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		ends := 0
		f := k.Cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.UnknownServerError, When: func(kmsg.Request) bool {
			ends++
			return ends == claims
		}})
		o, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		if err != nil || o.ID != p.ID || o.Counts.Succeeded != 20 || f.Hits() != 1 {
			t.Errorf("after %d faults the run ended with %v, and %+v", f.Hits(), err, o)
		}
	})
}

// An operator resumes a run before its own process knows that its claim was committed.
func TestClaim_TakenByAnotherIsNotTakenBack(t *testing.T) {
	t.Parallel()
	consumertest.Virtual(t, func(t *testing.T, k *consumertest.Kafka) {
		letters(t, k, 20, succeeding)
		r, p := planned(t, k)
		var o redrive.Outcome
		resumed := make(chan error, 1)
		unanswered(t, k, claims, func() {
			began := make(chan struct{})
			goesOn := sync.OnceFunc(func() { close(began) })
			go func() {
				var err error
				o, err = redriver(t, k).Resume(t.Context(), "orders.dlq", p.ID, ann(redrive.Pace{}, func(redrive.Event) { goesOn() }))
				resumed <- err
			}()
			<-began
		})
		_, err := r.Run(t.Context(), p, ann(redrive.Pace{}, nil))
		if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != redrive.RefusedUnfinished || e.Run.ID != p.ID {
			t.Errorf("the one that it was taken from ended with %v", err)
		}
		if err := <-resumed; err != nil || o.Counts.Succeeded != 20 {
			t.Errorf("the one that took it ended with %v, and %+v", err, o)
		}
	})
}
