package consumer

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// The defaults hold, and what no breaker can be is refused.
func TestBreaker_Settings(t *testing.T) {
	p := Policy{}.withDefaults()
	want := guard.Settings{Hold: 0.95, Strain: 0.2, MaxOutage: time.Hour}
	if got := p.guardSettings(); got != want || len(p.problems("Policy")) > 0 {
		t.Errorf("the defaults are %+v, want %+v; problems %v", got, want, p.problems("Policy"))
	}
	for name, tt := range map[string]struct {
		b    Breaker
		want string
	}{
		"a share of one":          {Breaker{Hold: 1}, "Breaker.Hold is 1"},
		"a share above one":       {Breaker{Hold: 1.1}, "Breaker.Hold is 1.1"},
		"a negative share":        {Breaker{Strained: -0.5}, "Breaker.Strained is -0.5"},
		"no number":               {Breaker{Hold: math.NaN()}, "Breaker.Hold is NaN"},
		"no number as a strain":   {Breaker{Strained: math.NaN()}, "Breaker.Strained is NaN"},
		"infinite":                {Breaker{Hold: math.Inf(1)}, "Breaker.Hold is +Inf"},
		"holds before it strains": {Breaker{Hold: 0.2}, "Breaker.Hold is 0.2"},
		"strains not before":      {Breaker{Strained: 0.97}, "Breaker.Hold is 0.95"},
		"a negative outage":       {Breaker{MaxOutage: -1}, "Breaker.MaxOutage is -1ns"},
		"a long outage":           {Breaker{MaxOutage: math.MaxInt64}, ""},
		"early":                   {Breaker{Hold: 0.5, Strained: 0.1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Policy{Breaker: tt.b}.withDefaults()
			got := errors.Join(p.problems("Policy")...)
			if tt.want == "" && got != nil || tt.want != "" && (got == nil || !strings.Contains(got.Error(), tt.want)) {
				t.Errorf("the problems of %+v are %v, want %q", tt.b, got, tt.want)
			}
		})
	}
}

// What a failure says of an outage: a handler that calls it terminal had an answer.
func TestBreaker_OutcomeOfFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want guard.Outcome
	}{
		"retryable":           {classify.Retryable(errors.New("x")), guard.Failed},
		"unknown":             {errors.New("x"), guard.Defect},
		"unknown, with class": {classify.As(errors.New("x"), "y"), guard.Defect},
		"a panic":             {&classify.PanicError{Value: "x"}, guard.Defect},
		"terminal":            {classify.Terminal(errors.New("x")), guard.Good},
		"discard":             {classify.Discard(errors.New("x")), guard.Good},
		"undecodable":         {classify.Undecodable(errors.New("x")), guard.Good},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outcomeOf(new(classify.Classifier).Classify(tt.err)); got != tt.want {
				t.Errorf("the outcome of %v is %v, want %v", tt.err, got, tt.want)
			}
		})
	}
}
