package consumer

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// The zero value is on, and what cannot be meant is refused.
func TestBreaker_Settings(t *testing.T) {
	p := Policy{}.withDefaults()
	want := breaker.Settings{
		Failures: 0.5, Defects: 0.9, Runs: 100, Row: 20, Interval: time.Second, MaxInterval: 15 * time.Second, Probes: 10,
		BudgetShare: 0.2, BudgetFloor: 100,
	}
	if got := p.breakerSettings(); got != want || len(p.problems("Policy")) > 0 {
		t.Errorf("the defaults are %+v with the problems %v, want %+v", got, p.problems("Policy"), want)
	}
	// A floor of "no limit" overflowed to a negative one, and no retry ran while the source was
	// idle.
	p = Policy{RetryBudget: RetryBudget{MinPerSecond: math.MaxInt}}.withDefaults()
	if got := p.breakerSettings().BudgetFloor; got < math.MaxInt32 {
		t.Errorf("the largest floor becomes %d", got)
	}
	type row struct {
		policy Policy
		want   string // of the problem; none if empty
	}
	each(t, map[string]row{
		"a share above one":          {Policy{Breaker: Breaker{Failures: 1.1}}, "Breaker.Failures is 1.1"},
		"a negative share":           {Policy{Breaker: Breaker{Failures: -0.5}}, "Breaker.Failures is -0.5"},
		"defects above one":          {Policy{Breaker: Breaker{Defects: 2}}, "Breaker.Defects is 2"},
		"no defects":                 {Policy{Breaker: Breaker{Defects: -1}}, ""},
		"no row":                     {Policy{Breaker: Breaker{InARow: -1}}, ""},
		"negative runs":              {Policy{Breaker: Breaker{MinRuns: -1}}, "Breaker.MinRuns is -1"},
		"a negative interval":        {Policy{Breaker: Breaker{Interval: -1}}, "Breaker.Interval is -1ns"},
		"an interval above the most": {Policy{Breaker: Breaker{Interval: time.Minute, MaxInterval: time.Second}}, "Breaker.MaxInterval 1s"},
		"a long interval":            {Policy{Breaker: Breaker{Interval: time.Minute}}, ""},
		"a budget above one":         {Policy{RetryBudget: RetryBudget{Share: 20}}, "RetryBudget.Share is 20"},
		"a negative floor":           {Policy{RetryBudget: RetryBudget{MinPerSecond: -1}}, "RetryBudget.MinPerSecond is -1"},
	}, func(t *testing.T, tt row) {
		got := fmt.Sprint(tt.policy.withDefaults().problems("Policy"))
		if tt.want == "" && got != "[]" || !strings.Contains(got, tt.want) {
			t.Errorf("the problems are %s, want %q", got, tt.want)
		}
	})
}

// What a failure says of an outage depends on who called it what.
func TestBreaker_OutcomeOfFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want breaker.Outcome
	}{
		"retryable":           {classify.Retryable(errors.New("x")), breaker.Failed},
		"unknown":             {errors.New("x"), breaker.Defect},
		"unknown, with class": {classify.As(errors.New("x"), "y"), breaker.Defect},
		"a panic":             {&classify.PanicError{Value: "x"}, breaker.Defect},
		"terminal":            {classify.Terminal(errors.New("x")), breaker.Decided},
		"discard":             {classify.Discard(errors.New("x")), breaker.Decided},
		"undecodable":         {classify.Undecodable(errors.New("x")), breaker.Decided},
	} {
		if got := outcomeOf((&classify.Classifier{}).Classify(tt.err)); got != tt.want {
			t.Errorf("%s: outcome %d, want %d", name, got, tt.want)
		}
	}
}
