package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive"
)

// Each process waited for 200 ms and initialised the transactional ids again, which fenced the
// others, and they did the same. Two took half a minute until one had the run, and four took over a
// hundred seconds.
func TestOperators_OfSixAtOnceOneRunsWithinTenSeconds(t *testing.T) {
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
	for range operators {
		r, err := redrive.New(redrive.Config{Kafka: s.Opts()})
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
	for i, r := range redrivers {
		go func() {
			by := fmt.Sprint("operator ", i)
			o, err := r.Run(t.Context(), plans[i], redrive.RunOptions{By: by, Pace: redrive.Pace{Canary: -1, Ramp: -1, Window: 30 * time.Second}, On: func(e redrive.Event) {
				if e.Message != "" {
					t.Logf("%v: %s: %s", time.Since(began), by, e.Message)
				}
			}})
			results <- result{by, o, err, time.Since(began)}
		}()
	}
	winner, refused, decidedAt := "", map[string]string{}, time.Duration(0)
	for range operators {
		res := <-results
		e, ok := errors.AsType[*redrive.RefusedError](res.err)
		switch {
		case res.err == nil && res.o.Counts.Succeeded == 100 && winner == "":
			winner = res.by
		case ok && e.Reason == redrive.RefusedUnfinished:
			refused[res.by], decidedAt = e.Error(), max(decidedAt, res.at)
		default:
			t.Errorf("%s ended with %v, and %+v", res.by, res.err, res.o)
		}
	}
	t.Logf("decided after %v", decidedAt)
	if len(refused) != operators-1 || decidedAt > 10*time.Second {
		t.Errorf("after %v %d were refused, want 5 within 10s", decidedAt, len(refused))
	}
	for by, why := range refused {
		if !strings.Contains(why, winner+" on ") {
			t.Errorf("%s owns the run, and the error of %s is: %s", winner, by, why)
		}
	}
	s.onceEach(topic, topic+".retry.1s", 100)
}
