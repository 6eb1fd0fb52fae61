package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive"
)

// Resume took a run from its live process if the ledger took longer to read than Resume waited.
func TestResume_LeavesARunThatGoesOnWhereItCannotLook(t *testing.T) {
	t.Parallel()
	s := onKafka(t)
	topic := topicName(t)
	s.CreateTopic(topic, 1)
	v := s.deploy(topic, topic, time.Second)
	const n = 60
	s.incident(topic, "order", n)
	v.fixed()
	r, err := redrive.New(redrive.Config{Kafka: s.Opts()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Plan(t.Context(), redrive.Selection{Topic: topic + ".dlq"})
	if err != nil {
		t.Fatal(err)
	}
	begun, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var beginning, end sync.Once
	var o redrive.Outcome
	ctx, over := context.WithCancel(t.Context())
	defer over()
	go func() { // it goes on until it is told to end
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
	_, err = r.Resume(trying, topic+".dlq", p.ID, redrive.RunOptions{By: "bob"}, redrive.IfSilent())
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
	if err != nil {
		s.t.Fatal(err)
	}
	err = cl.BeginTransaction()
	if err == nil {
		err = cl.ProduceSync(s.t.Context(), &kgo.Record{Topic: topic, Key: []byte("nothing")}).FirstErr()
	}
	if err != nil {
		s.t.Fatal(err)
	}
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
