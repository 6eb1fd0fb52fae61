package integration_test

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

	"github.com/sidingkafka/siding/redrive"
)

// Each process waited for 200 ms and initialised the transactional ids again, which fenced the
// others, and they did the same. Two took half a minute until one had the run, and four took over a
// hundred seconds.
//
// How often the ids are initialised does not depend on the machine's speed, so that is counted. The
// ten seconds are those of redrive/redriver_claim_operators_test.go, in virtual time.
func TestOperators_OfSixAtOnceOneRunsSoon(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic, _ := s.repaired(3, 100)
	type result struct {
		by  string
		o   redrive.Outcome
		err error
		at  time.Duration
	}
	const operators = 6
	var redrivers []*redrive.Redriver
	var plans []*redrive.Plan
	inits := new(initialised)
	for range operators {
		r, p := s.planned(topic, kgo.WithHooks(inits))
		redrivers, plans = append(redrivers, r), append(plans, p)
	}
	results := make(chan result, operators)
	began := time.Now()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	succeeded := make(chan string, operators)
	for i, r := range redrivers {
		go func() {
			by := fmt.Sprint("operator ", i)
			var once sync.Once
			// The run lasts until all others were refused.
			o, err := r.Run(ctx, plans[i], redrive.RunOptions{By: by, Pace: redrive.Pace{Canary: -1, Ramp: -1, Window: time.Hour}, On: func(e redrive.Event) {
				if e.Message != "" {
					t.Logf("%v: %s: %s", time.Since(began), by, e.Message)
				}
				if e.Counts.Succeeded == 100 {
					once.Do(func() { succeeded <- by })
				}
			}})
			results <- result{by, o, err, time.Since(began)}
		}()
	}
	refused, decidedAt, tooLate := map[string]string{}, time.Duration(0), time.After(time.Minute)
	for len(refused) < operators-1 {
		select {
		case res := <-results:
			e, ok := errors.AsType[*redrive.RefusedError](res.err)
			if !ok || e.Reason != redrive.RefusedUnfinished {
				t.Fatalf("%s ended with %v, and %+v", res.by, res.err, res.o)
			}
			refused[res.by], decidedAt = e.Error(), max(decidedAt, res.at)
		case <-tooLate:
			t.Fatalf("after a minute %d were refused, want 5; ids were initialised %d times", len(refused), inits.Load())
		}
	}
	n := inits.Load()
	t.Logf("decided after %v, and ids were initialised %d times", decidedAt, n)
	// Each has two ids; who lost them reads the ledger before initialising them again.
	if n < 2 || n > 6*operators {
		t.Errorf("ids were initialised %d times, want twice by each operator, and some more", n)
	}
	var winner string
	select {
	case winner = <-succeeded:
	case <-time.After(s.Patience):
		t.Fatal("the run does not redrive all letters")
	}
	over()
	if res := <-results; res.by != winner || res.o.Counts.Succeeded != 100 {
		t.Errorf("%s ended with %v, and %+v", res.by, res.err, res.o)
	}
	for by, why := range refused {
		if !strings.Contains(why, winner+" on ") {
			t.Errorf("%s owns the run, and the error of %s is: %s", winner, by, why)
		}
	}
	s.onceEach(topic, topic+".retry.1s", 100)
}

// initialised counts requests for the epochs of transactional ids.
type initialised struct{ atomic.Int64 }

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (i *initialised) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.InitProducerID) {
		i.Add(1)
	}
}

// Resume took a run from its live process if the ledger took longer to read than Resume waited.
func TestResume_LeavesARunThatGoesOnWhereItCannotLook(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	const n = 60
	topic, _ := s.repaired(1, n)
	r, p := s.planned(topic)
	begun, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var beginning, end sync.Once
	var o redrive.Outcome
	ctx, over := context.WithCancel(t.Context())
	defer over()
	go func() { // it goes on until its context ends
		var err error
		o, err = r.Run(ctx, p, redrive.RunOptions{By: "ann", Pace: redrive.Pace{Rate: 5, Canary: -1, Ramp: -1, Window: time.Hour}, On: func(e redrive.Event) {
			if e.Counts.Sent > 5 {
				beginning.Do(func() { close(begun) })
			}
			if e.Counts.Succeeded == n {
				end.Do(func() { close(done) })
			}
		}})
		ended <- err
	}()
	<-begun
	s.heldUp(topic+".dlq.ledger", 5*time.Second)
	trying, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := r.Resume(trying, topic+".dlq", p.ID, redrive.RunOptions{By: "bob"}, redrive.IfSilent())
	if e, ok := errors.AsType[*redrive.RefusedError](err); !ok || e.Reason != redrive.RefusedOwned {
		t.Errorf("resume ended with %v, want that ann has the run", err)
	}
	select {
	case <-done:
	case err := <-ended:
		t.Fatalf("the run ended with %v, and %+v", err, o)
	case <-time.After(s.Patience):
		t.Fatal("the run does not redrive all letters")
	}
	over()
	if err := <-ended; !errors.Is(err, context.Canceled) || o.Counts.Succeeded != n {
		t.Errorf("the run ended with %v, and %+v", err, o)
	}
	s.onceEach(topic, topic+".retry.1s", n)
}

// heldUp opens a transaction on a topic and aborts it some time later; committed readers wait until
// then.
func (s *site) heldUp(topic string, during time.Duration) {
	s.t.Helper()
	cl, err := kgo.NewClient(append(s.Opts(), kgo.TransactionalID(topic))...)
	must(s.t, err)
	err = cl.BeginTransaction()
	if err == nil {
		err = cl.ProduceSync(s.t.Context(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr()
	}
	must(s.t, err)
	over := make(chan struct{})
	time.AfterFunc(during, func() {
		defer close(over)
		defer cl.Close()
		if err := cl.EndTransaction(context.Background(), kgo.TryAbort); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() { <-over })
}
