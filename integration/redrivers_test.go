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
	topic := topicName(t)
	s.CreateTopic(topic, 3)
	v := s.deploy(topic, topic, time.Second)
	s.incident(topic, "order", 100)
	v.fixed()
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
		r, err := redrive.New(redrive.Config{Kafka: append(s.Opts(), kgo.WithHooks(inits))})
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Plan(t.Context(), redrive.Selection{Topic: topic + ".dlq"})
		if err != nil {
			t.Fatal(err)
		}
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
