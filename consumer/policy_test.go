package consumer

import (
	"io"
	"math"
	"testing"
	"time"

	"github.com/sidingkafka/siding/classify"
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
