package consumer

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/retrytopics"
)

func siblingsFor(t *testing.T, delays ...time.Duration) retrytopics.Siblings {
	t.Helper()
	s, err := retrytopics.Naming{}.Siblings("orders", "billing", delays...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The policy decides the destination and the reason of a failed record.
func TestPolicy_DecidesWhatBecomesOfAFailure(t *testing.T) {
	const s5, s30, m5 = 5 * time.Second, 30 * time.Second, 5 * time.Minute
	var (
		siblings = siblingsFor(t, s5, s30, m5)
		source   = retrytopics.Tier{}
		first    = siblings.Tiers[0]
		second   = siblings.Tiers[1]
		last     = siblings.Tiers[2]
		removed  = retrytopics.Tier{Delay: 10 * time.Second, Topic: "orders.retry.10s"}
		now      = time.UnixMilli(1_000_000_000_000)
		retry    = classify.Result{Verdict: classify.VerdictRetry, Class: "busy"}
		after    = func(d time.Duration) classify.Result {
			return classify.Result{Verdict: classify.VerdictRetry, Class: "busy", RetryAfter: d}
		}
		terminal = func(class string) classify.Result {
			return classify.Result{Verdict: classify.VerdictTerminal, Class: class}
		}
		failure = func(err error) classify.Result { return new(classify.Classifier).Classify(err) }
		waits   = func(t retrytopics.Tier, d time.Duration) decision { return decision{tier: t, due: now.Add(d)} }
		rests   = func(how Disposition, r headers.Reason) decision { return decision{final: true, how: how, reason: r} }
	)
	type row struct {
		policy   Policy
		from     retrytopics.Tier
		attempts int
		age      time.Duration
		redrive  headers.Redrive
		free     bool
		result   classify.Result
		want     decision
	}
	each(t, map[string]row{
		"first failure: the first tier":            {from: source, attempts: 1, result: retry, want: waits(first, s5)},
		"from a tier: the one behind it":           {from: first, attempts: 2, result: retry, want: waits(second, s30)},
		"from the last tier: exhausted":            {from: last, attempts: 4, result: retry, want: rests(DeadLetter, headers.ReasonExhausted)},
		"more attempts repeat the last tier":       {policy: Policy{MaxAttempts: 6}, from: last, attempts: 5, result: retry, want: waits(last, m5)},
		"attempts end before the tiers":            {policy: Policy{MaxAttempts: 2}, from: first, attempts: 2, result: retry, want: rests(DeadLetter, headers.ReasonExhausted)},
		"far over the attempts":                    {from: first, attempts: 1_000_000, result: retry, want: rests(DeadLetter, headers.ReasonExhausted)},
		"exhausted, to be discarded":               {policy: Policy{OnExhausted: Discard}, from: last, attempts: 4, result: retry, want: rests(Discard, headers.ReasonExhausted)},
		"exhausted, to stop":                       {policy: Policy{OnExhausted: Stop}, from: last, attempts: 4, result: retry, want: rests(Stop, headers.ReasonExhausted)},
		"redriven: its first failure":              {from: first, attempts: 1, result: retry, want: waits(second, s30)},
		"redriven: as often as its run says":       {redrive: headers.Redrive{MaxAttempts: 2}, from: second, attempts: 2, result: retry, want: rests(DeadLetter, headers.ReasonExhausted)},
		"redriven: not as often yet":               {redrive: headers.Redrive{MaxAttempts: 3}, from: first, attempts: 2, result: retry, want: waits(second, s30)},
		"redriven: more often than the policy":     {redrive: headers.Redrive{MaxAttempts: 9}, from: last, attempts: 4, result: retry, want: waits(last, m5)},
		"redriven: never without an end":           {redrive: headers.Redrive{MaxAttempts: headers.MaxAttempts}, from: last, attempts: 100, result: retry, want: rests(DeadLetter, headers.ReasonExhausted)},
		"redriven: the policy has no such end":     {policy: Policy{MaxAttempts: 200}, redrive: headers.Redrive{MaxAttempts: headers.MaxAttempts}, from: last, attempts: 199, result: retry, want: waits(last, m5)},
		"redriven: its age is that of the redrive": {policy: Policy{MaxAge: time.Minute}, redrive: headers.Redrive{At: now.Add(-time.Minute + 1)}, from: first, attempts: 1, age: time.Hour, result: retry, want: waits(second, s30)},
		"redriven: of age":                         {policy: Policy{MaxAge: time.Minute}, redrive: headers.Redrive{At: now.Add(-time.Minute)}, from: first, attempts: 1, age: time.Hour, result: retry, want: rests(DeadLetter, headers.ReasonExpired)},
		"of age: expired":                          {policy: Policy{MaxAge: time.Minute}, from: first, attempts: 2, age: time.Minute, result: retry, want: rests(DeadLetter, headers.ReasonExpired)},
		"not of age yet":                           {policy: Policy{MaxAge: time.Minute}, from: first, attempts: 2, age: time.Minute - 1, result: retry, want: waits(second, s30)},
		"expired goes before exhausted":            {policy: Policy{MaxAge: time.Minute}, from: last, attempts: 4, age: time.Hour, result: retry, want: rests(DeadLetter, headers.ReasonExpired)},
		"no MaxAge: never expired":                 {from: first, attempts: 2, age: 1000 * time.Hour, result: retry, want: waits(second, s30)},
		"a first failure in the future":            {policy: Policy{MaxAge: time.Minute}, from: first, attempts: 2, age: -time.Hour, result: retry, want: waits(second, s30)},
		"RetryAfter: the first tier as long":       {from: source, attempts: 1, result: after(20 * time.Second), want: waits(second, s30)},
		"RetryAfter as long as a tier":             {from: source, attempts: 1, result: after(s30), want: waits(second, s30)},
		"RetryAfter shorter than the tier":         {from: source, attempts: 1, result: after(time.Second), want: waits(first, s5)},
		"a short RetryAfter skips no tier":         {from: first, attempts: 2, result: after(time.Second), want: waits(second, s30)},
		"a RetryAfter shorter than the last tier":  {from: second, attempts: 3, result: after(time.Second), want: waits(last, m5)},
		"RetryAfter beyond the tiers":              {from: source, attempts: 1, result: after(20 * time.Minute), want: waits(last, 20*time.Minute)},
		"RetryAfter beyond MaxRetryAfter":          {from: source, attempts: 1, result: after(100 * time.Hour), want: waits(last, time.Hour)},
		"RetryAfter, and MaxRetryAfter none":       {policy: Policy{MaxRetryAfter: -1}, from: source, attempts: 1, result: after(time.Minute), want: waits(first, s5)},
		"RetryAfter does not add an attempt":       {from: last, attempts: 4, result: after(time.Second), want: rests(DeadLetter, headers.ReasonExhausted)},
		"RetryAfter, negative":                     {from: source, attempts: 1, result: after(-time.Hour), want: waits(first, s5)},
		"a removed tier: the next one as long":     {from: removed, attempts: 2, result: retry, want: waits(second, s30)},
		"a removed tier of a configured delay":     {from: retrytopics.Tier{Delay: s5, Topic: "orders.retry.old.5s"}, attempts: 2, result: retry, want: waits(second, s30)},
		"a removed tier longer than all":           {from: retrytopics.Tier{Delay: time.Hour, Topic: "orders.retry.1h"}, attempts: 2, result: retry, want: waits(last, m5)},
		"a removed tier and a longer RetryAfter":   {from: removed, attempts: 2, result: after(time.Minute), want: waits(last, m5)},
		"free: the first tier":                     {free: true, from: source, attempts: 1, result: retry, want: waits(first, s5)},
		"free: the same tier":                      {free: true, from: second, attempts: 3, result: retry, want: waits(second, s30)},
		"free: with no attempt left":               {free: true, policy: Policy{OnExhausted: Stop}, from: last, attempts: 4, result: retry, want: waits(last, m5)},
		"free, of age":                             {free: true, policy: Policy{MaxAge: time.Minute}, from: first, attempts: 2, age: time.Minute, result: retry, want: rests(DeadLetter, headers.ReasonExpired)},
		"free, and a longer RetryAfter":            {free: true, from: first, attempts: 2, result: after(20 * time.Second), want: waits(second, s30)},
		"free, and RetryAfter beyond the tiers":    {free: true, from: first, attempts: 2, result: after(20 * time.Minute), want: waits(last, 20*time.Minute)},
		"free, of a removed tier":                  {free: true, from: removed, attempts: 2, result: retry, want: waits(second, s30)},
		"free, of a removed tier longer than all":  {free: true, from: retrytopics.Tier{Delay: time.Hour, Topic: "orders.retry.1h"}, attempts: 2, result: retry, want: waits(last, m5)},
		"terminal is not free":                     {free: true, from: source, attempts: 1, result: terminal("x"), want: rests(DeadLetter, headers.ReasonTerminal)},
		"terminal":                                 {from: source, attempts: 1, result: terminal("orders.SKUError"), want: rests(DeadLetter, headers.ReasonTerminal)},
		"terminal in a tier":                       {from: second, attempts: 3, result: terminal("orders.SKUError"), want: rests(DeadLetter, headers.ReasonTerminal)},
		"terminal goes before expired":             {policy: Policy{MaxAge: 1}, from: first, attempts: 9, age: time.Hour, result: terminal("x"), want: rests(DeadLetter, headers.ReasonTerminal)},
		"terminal, to be discarded":                {policy: Policy{OnTerminal: Discard}, from: source, attempts: 1, result: terminal("x"), want: rests(Discard, headers.ReasonTerminal)},
		"terminal, to stop":                        {policy: Policy{OnTerminal: Stop}, from: source, attempts: 1, result: terminal("x"), want: rests(Stop, headers.ReasonTerminal)},
		"terminal: RetryAfter is not asked for":    {from: source, attempts: 1, result: classify.Result{Class: "x", RetryAfter: time.Hour}, want: rests(DeadLetter, headers.ReasonTerminal)},
		"a panic":                                  {from: source, attempts: 1, result: failure(&classify.PanicError{Value: "x"}), want: rests(DeadLetter, headers.ReasonPanic)},
		"a decoder's panic":                        {from: source, attempts: 1, result: failure(classify.Undecodable(&classify.PanicError{Value: "x"})), want: rests(DeadLetter, headers.ReasonPanic)},
		"a schema of tomorrow":                     {from: source, attempts: 1, result: failure(classify.As(classify.UnsupportedVersion(io.EOF), "orders.v3")), want: rests(DeadLetter, headers.ReasonUnsupportedVersion)},
		"what has a name and cannot be decoded":    {from: source, attempts: 1, result: failure(classify.Undecodable(classify.As(io.EOF, "avro.eof"))), want: rests(DeadLetter, headers.ReasonDecode)},
		"what cannot be decoded":                   {from: source, attempts: 1, result: failure(classify.Undecodable(io.EOF)), want: rests(DeadLetter, headers.ReasonDecode)},
		"what no route is for":                     {from: source, attempts: 1, result: terminal(classUnroutable), want: rests(DeadLetter, headers.ReasonUnroutable)},
		"a class like a panic's":                   {from: source, attempts: 1, result: terminal("panic.string"), want: rests(DeadLetter, headers.ReasonTerminal)},
		"discard":                                  {from: first, attempts: 2, result: classify.Result{Verdict: classify.VerdictDiscard}, want: rests(Discard, headers.ReasonTerminal)},
		"discard goes before the policy":           {policy: Policy{OnTerminal: Stop, OnExhausted: Stop, MaxAge: 1}, from: last, attempts: 99, age: time.Hour, result: classify.Result{Verdict: classify.VerdictDiscard}, want: rests(Discard, headers.ReasonTerminal)},
		"an unknown verdict is terminal":           {from: source, attempts: 1, result: classify.Result{Verdict: 99, Class: "x"}, want: rests(DeadLetter, headers.ReasonTerminal)},
	}, func(t *testing.T, tt row) {
		p := tt.policy
		p.Jitter = -1
		p = p.withDefaults()
		if got := p.decide(siblings, tt.from, &headers.Meta{Attempts: tt.attempts, FirstFailedAt: now.Add(-tt.age), Redrive: tt.redrive}, now, 0, tt.free, tt.result); got != tt.want {
			t.Errorf("got  %+v\nwant %+v", got, tt.want)
		}
	})
}

// Jitter only makes a delay longer, by at most its share.
func TestPolicy_JitterIsLaterAndBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		jitter      float64
		delay, most time.Duration
	}{
		{0, time.Hour, 0},
		{-1, time.Hour, 0},
		{0.1, 5 * time.Second, 500 * time.Millisecond},
		{0.1, 9 * time.Millisecond, 0},
		{0.5, 10 * time.Millisecond, 5 * time.Millisecond},
		{1, time.Second, time.Second},
		{1, 100 * 365 * 24 * time.Hour, 100 * 365 * 24 * time.Hour},
	} {
		least, most := time.Duration(math.MaxInt64), time.Duration(-1)
		for range 2000 {
			got := spread(tt.jitter, tt.delay)
			least, most = min(least, got), max(most, got)
			if got < 0 || got > tt.most || got%time.Millisecond != 0 {
				t.Fatalf("spread(%v, %v) = %v, want whole milliseconds up to %v", tt.jitter, tt.delay, got, tt.most)
			}
		}
		if tt.most > 0 && (most < tt.most*3/4 || least > tt.most/4) {
			t.Errorf("spread(%v, %v) lies in %v … %v, want all of 0 … %v", tt.jitter, tt.delay, least, most, tt.most)
		}
	}
}

// Jitter comes on top of the tier's delay.
func TestPolicy_JitterIsOnTopOfTheDelay(t *testing.T) {
	t.Parallel()
	p := Policy{Jitter: 0.5}.withDefaults()
	now := time.UnixMilli(1_000_000_000_000)
	s := siblingsFor(t, p.Tiers...)
	for asked, least := range map[time.Duration]time.Duration{
		0: 5 * time.Second, time.Second: 5 * time.Second, 7 * time.Second: 30 * time.Second, 20 * time.Minute: 20 * time.Minute,
	} {
		var longest time.Duration
		for range 500 {
			d := p.decide(s, retrytopics.Tier{}, &headers.Meta{Attempts: 1, FirstFailedAt: now}, now, 0, false, classify.Result{Verdict: classify.VerdictRetry, RetryAfter: asked})
			wait := d.due.Sub(now)
			if wait < least || wait > least*3/2 {
				t.Fatalf("asked for %v: due after %v, want %v to %v", asked, wait, least, least*3/2)
			}
			longest = max(longest, wait)
		}
		if longest < least*5/4 {
			t.Errorf("asked for %v: the longest wait of 500 is %v, so they are not spread up to %v", asked, longest, least*3/2)
		}
	}
}

// An in-place retry waits at most Base, doubled with each run, and never longer than Max.
func TestPolicy_WaitInPlaceDoublesUpToMax(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		m    Immediate
		n    int
		most time.Duration
	}{
		{Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}, 1, 10 * time.Millisecond},
		{Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}, 3, 40 * time.Millisecond},
		{Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}, 5, 160 * time.Millisecond},
		{Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}, 6, 200 * time.Millisecond},
		{Immediate{Base: 10 * time.Millisecond, Max: 200 * time.Millisecond}, 1 << 40, 200 * time.Millisecond},
		{Immediate{Base: time.Second, Max: 200 * time.Millisecond}, 1, 200 * time.Millisecond},
		// These would overflow.
		{Immediate{Base: time.Minute, Max: 200 * time.Millisecond}, 30, 200 * time.Millisecond},
		{Immediate{Base: time.Second, Max: math.MaxInt64}, 30, time.Second << 29},
		{Immediate{Base: time.Minute, Max: math.MaxInt64}, 60, math.MaxInt64},
		{Immediate{Base: math.MaxInt64, Max: math.MaxInt64}, 1, math.MaxInt64},
		{Immediate{Base: 1, Max: math.MaxInt64}, 63, math.MaxInt64},
	} {
		least, most := time.Duration(math.MaxInt64), time.Duration(-1)
		for range 500 {
			got := tt.m.wait(tt.n)
			least, most = min(least, got), max(most, got)
		}
		if want := tt.most; least < 0 || most > want || most < want/4*3 || least > want/4 {
			t.Errorf("%+v waits %v … %v before repetition %d, want 0 … %v", tt.m, least, most, tt.n, want)
		}
	}
}

// RetryTime is what a record that always fails can take, and no less: the kit waits that long.
func TestPolicy_RetryTimeIsTheLongestPath(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy Policy
		want   time.Duration
	}{
		"the default":              {Policy{}, (5*time.Second + 30*time.Second + 5*time.Minute) * 11 / 10},
		"without jitter":           {Policy{Tiers: []time.Duration{time.Minute, time.Hour}, Jitter: -1}, 61 * time.Minute},
		"no tiers":                 {Policy{Tiers: []time.Duration{}}, 0},
		"the last tier repeats":    {Policy{Tiers: []time.Duration{time.Minute}, MaxAttempts: 4, Jitter: -1}, 3 * time.Minute},
		"fewer attempts":           {Policy{Tiers: []time.Duration{time.Minute, time.Hour}, MaxAttempts: 2, Jitter: -1}, time.Minute},
		"it grows too old":         {Policy{Tiers: []time.Duration{time.Minute, time.Hour}, MaxAttempts: 20, MaxAge: 90 * time.Minute, Jitter: -1}, 121 * time.Minute},
		"runs in place come first": {Policy{Tiers: []time.Duration{time.Minute}, Immediate: Immediate{Attempts: 3, Base: 10 * time.Millisecond, Max: 30 * time.Millisecond}, Jitter: -1}, time.Minute + 60*time.Millisecond},
		"for ever until too old":   {Policy{Tiers: []time.Duration{time.Minute, time.Hour}, MaxAttempts: math.MaxInt, MaxAge: 150 * time.Minute, Jitter: -1}, 181 * time.Minute},
		"for ever":                 {Policy{Tiers: []time.Duration{12 * time.Hour}, MaxAttempts: math.MaxInt}, math.MaxInt64},
		"a delay that New refuses": {Policy{Tiers: []time.Duration{0}, MaxAttempts: 3, MaxAge: time.Minute}, 0},
		"in place for ever":        {Policy{Immediate: Immediate{Attempts: math.MaxInt}}, math.MaxInt64},
		"longer than a number is":  {Policy{Tiers: []time.Duration{12 * time.Hour}, MaxAttempts: 1_000_000}, math.MaxInt64},
	} {
		if got := c.policy.RetryTime(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

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

// A record goes one tier up with each failure, and stays on the last.
func TestNext_GoesOneTierUpAndStaysOnTheLast(t *testing.T) {
	t.Parallel()
	s := siblingsFor(t, retrytopics.Default...)
	source, first, second, last := retrytopics.Tier{}, s.Tiers[0], s.Tiers[1], s.Tiers[2]
	for _, c := range []struct {
		from    retrytopics.Tier
		atLeast time.Duration
		want    retrytopics.Tier
	}{
		{source, 0, first},
		{first, 0, second},
		{second, 0, last},
		{last, 0, last},
		{source, 5 * time.Second, first},
		{source, 6 * time.Second, second},
		{source, time.Hour, last},
		{second, 6 * time.Second, last},
		{last, time.Hour, last},
		{source, -time.Second, first},
		// Tiers that left the configuration.
		{retrytopics.Tier{Delay: 10 * time.Second, Topic: "orders.retry.10s"}, 0, second},
		{retrytopics.Tier{Delay: 10 * time.Second, Topic: "orders.retry.10s"}, time.Minute, last},
		{retrytopics.Tier{Delay: first.Delay, Topic: "orders.former.5s"}, 0, second},
	} {
		if got := next(s, c.from, c.atLeast); got != c.want {
			t.Errorf("next(%v, %s) = %v, want %v", c.from, c.atLeast, got, c.want)
		}
	}
	if got := next(siblingsFor(t), source, time.Second); got != (retrytopics.Tier{}) {
		t.Errorf("next with no tiers = %v, want none", got)
	}
}

// The next wait is never shorter than the last, whatever tiers were configured meanwhile.
func TestNext_NeverGoesDown(t *testing.T) {
	t.Parallel()
	s := siblingsFor(t, retrytopics.Cautious...)
	last := s.Tiers[len(s.Tiers)-1]
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(s.Tiers).Draw(t, "from")
		atLeast := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "atLeast"))
		got := next(s, from, atLeast)
		if got.Delay <= from.Delay && got != last {
			t.Errorf("next(%s, %s) = %s", from.Topic, atLeast, got.Topic)
		}
		if got.Delay < atLeast && got != last {
			t.Errorf("next(%s, %s) = %s: too short", from.Topic, atLeast, got.Topic)
		}
	})
}
