package breaker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// defaults are the settings of a policy that sets none.
var defaults = Settings{
	Failures: 0.5, Defects: 0.9, Runs: 100, Row: 20, Interval: time.Second, MaxInterval: 15 * time.Second, Probes: 10,
	BudgetShare: 0.2, BudgetFloor: 100,
}

// run is one run that a model remembers.
type run struct {
	at          time.Duration
	o           Outcome
	tier, retry bool
}

// model is a breaker that remembers every run and every probe, and counts them anew each time.
type model struct {
	set    Settings
	runs   []run // since it closed
	state  State
	waited []time.Duration // the waits before probes since it opened
	due    time.Duration
	score  int
	ramp   []Outcome // of the ramp
	since  []Outcome // good ones since the permits grew
	most   int       // permits
	denied bool
}

// window returns the runs of the last ten seconds, as buckets count them.
func (m *model) window(now time.Duration) (all []run) {
	for _, r := range m.runs {
		if now/time.Second-r.at/time.Second < 10 {
			all = append(all, r)
		}
	}
	return all
}

func number(all []run, is func(run) bool) (n int64) {
	for _, r := range all {
		if is(r) {
			n++
		}
	}
	return n
}

func bad(r run) bool { return r.o == Failed || r.o == Defect }

// opens reports whether the last run, a bad one, opens the breaker.
func (m *model) opens(now time.Duration) bool {
	w := m.window(now)
	all := int64(len(w))
	first := number(w, func(r run) bool { return !r.tier })
	firstBad := number(w, func(r run) bool { return !r.tier && bad(r) })
	failed := number(w, func(r run) bool { return r.o == Failed })
	defects := number(w, func(r run) bool { return r.o == Defect })
	if all >= m.set.Runs && first >= 10 && float64(firstBad) >= m.set.Failures*float64(first) {
		if float64(failed) >= m.set.Failures*float64(all) || float64(defects) >= m.set.Defects*float64(all) {
			return true
		}
	}
	var row []run
	for _, r := range slices.Backward(m.runs) {
		if !bad(r) || len(row) > 0 && !r.tier && row[len(row)-1].at-r.at > time.Minute {
			break
		}
		if !r.tier {
			row = append(row, r)
		}
	}
	return m.set.Row > 0 && int64(len(row)) >= m.set.Row && now-row[len(row)-1].at >= 10*time.Second
}

// wait is the next wait before a probe: 1, 2, 4 … 15 s.
func (m *model) wait(now time.Duration) {
	next := m.set.Interval
	if n := len(m.waited); n > 0 {
		next = min(2*m.waited[n-1], m.set.MaxInterval)
	}
	m.waited = append(m.waited, next)
	m.due = now + next
}

func (m *model) close() { *m = model{set: m.set} }

// A breaker agrees with a model that remembers everything: when it opens, when it offers a probe,
// when it closes, and when the budget is used up.
func TestBreaker_AgreesWithTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		set := defaults
		set.Runs = rapid.SampledFrom([]int64{15, 100}).Draw(t, "min runs")
		set.BudgetFloor = rapid.SampledFrom([]int64{5, 100}).Draw(t, "floor")
		b, m := New(set), &model{set: set}
		now := time.Duration(0)
		likely := []Outcome{Good, Failed, Defect, Decided}
		agree := func(t *rapid.T, what string) {
			state, _ := b.State()
			if state != m.state {
				t.Fatalf("%s at %v: the breaker is %v, the model %v", what, now, state, m.state)
			}
			offers := m.state == Open && now >= m.due || m.state == Ramp
			if got := b.Offers(now); got != offers {
				t.Fatalf("%s at %v: offers %v, the model %v", what, now, got, offers)
			}
			if at, ok := b.Next(); ok != (m.state != Closed) || m.state == Open && at != m.due {
				t.Fatalf("%s at %v: the next probe at %v, %v; the model's at %v", what, now, at, ok, m.due)
			}
			w := m.window(now)
			again := number(w, func(r run) bool { return bad(r) && r.retry })
			limit := max(set.BudgetFloor, int64(set.BudgetShare*float64(len(w))))
			if got, want := b.HoldsRetries(now), again >= limit; got != want {
				t.Fatalf("%s at %v: holds retries: %v; %d of %d runs were retries that failed again", what, now, got, again, len(w))
			}
		}
		count := func(t *rapid.T, o Outcome, tier, retry bool) {
			opened := b.Count(now, o, 1, tier, retry)
			if o == Good || o == Failed || o == Defect {
				m.runs = append(m.runs, run{now, o, tier, retry})
			}
			want := m.state == Closed && !tier && (o == Failed || o == Defect) && m.opens(now)
			if want {
				m.state = Open
				m.wait(now)
			}
			if opened != want {
				t.Fatalf("at %v after %d runs: opened %v, want %v", now, len(m.runs), opened, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now += time.Duration(rapid.SampledFrom([]int{1, 30, 400, 1000, 2500, 11_000, 70_000}).Draw(t, "ms")) * time.Millisecond
			},
			"runs": func(t *rapid.T) {
				o := rapid.SampledFrom(likely).Draw(t, "outcome")
				tier := rapid.IntRange(0, 3).Draw(t, "tier") == 0
				retry := tier && rapid.Bool().Draw(t, "retry")
				for range rapid.IntRange(1, 30).Draw(t, "n") {
					count(t, o, tier, retry)
				}
			},
			"an outage": func(t *rapid.T) {
				step := time.Duration(rapid.SampledFrom([]int{1, 50, 700}).Draw(t, "step")) * time.Millisecond
				for range rapid.IntRange(10, 40).Draw(t, "n") {
					now += step
					count(t, Failed, false, false)
				}
			},
			"run with a permit": func(t *rapid.T) {
				was := m.state
				p := b.Acquire(now)
				if want := was == Open && now >= m.due || was == Ramp; p.OK() != want {
					t.Fatalf("at %v: a permit: %v, want %v", now, p.OK(), want)
				}
				if !p.OK() {
					return
				}
				if p.Probe() != (was == Open) {
					t.Fatalf("a probe: %v in state %v", p.Probe(), was)
				}
				o := rapid.SampledFrom([]Outcome{Good, Good, Decided, Failed, Defect, Void}).Draw(t, "outcome")
				tier := rapid.IntRange(0, 3).Draw(t, "tier") == 0
				repeated := rapid.IntRange(0, 9).Draw(t, "repeated") == 0
				failed := o == Failed || o == Defect
				changed := b.Release(now, p, o, tier, repeated)
				switch {
				case o == Void:
					if was == Open {
						m.due = now
					}
				case was == Open && !failed:
					m.score++
					m.due = now
					if m.score == 10 {
						m.state, m.score, m.most = Ramp, 0, 2
					}
				case was == Open && repeated && m.score > 0:
					m.state, m.score, m.most = Ramp, 0, 2
				case was == Open && tier && m.score > 0:
					m.due = now + m.set.Interval
				case was == Open:
					switch m.score {
					case 0:
						m.wait(now)
					case 1:
						m.score, m.due = 0, now+m.set.Interval
					default:
						m.score, m.due = m.score-1, now
					}
				default:
					if failed && tier {
						o, failed = Decided, false // but it speaks for nothing
					} else {
						m.ramp = append(m.ramp, o)
					}
					good, ill := 10, 0
					for _, o := range m.ramp {
						if o == Failed || o == Defect {
							ill++
						} else {
							good++
						}
					}
					switch {
					case failed && 2*ill >= good+ill:
						waited := m.waited
						m.state, m.ramp, m.since, m.denied = Open, nil, nil, false
						m.waited = waited
						m.wait(now)
					case !failed:
						if m.since = append(m.since, o); len(m.since) == m.most {
							if m.denied {
								m.most, m.since, m.denied = 2*m.most, nil, false
							} else {
								m.close()
							}
						}
					}
				}
				if changed != (was != m.state) {
					t.Fatalf("changed: %v, from %v to %v", changed, was, m.state)
				}
			},
			"more than the ramp permits": func(t *rapid.T) {
				if m.state != Ramp {
					return
				}
				var all []Permit
				for range m.most {
					p := b.Acquire(now)
					if !p.OK() {
						t.Fatalf("the ramp permits %d, want %d", len(all), m.most)
					}
					all = append(all, p)
				}
				if b.Acquire(now).OK() {
					t.Fatalf("the ramp permits more than %d", m.most)
				}
				m.denied = true
				for _, p := range all {
					b.Release(now, p, Void, false, false)
				}
			},
			"": func(t *rapid.T) { agree(t, "then") },
		})
	})
}

// feed counts n runs, one after the other.
func feed(b *Breaker, from, step time.Duration, n int, o Outcome) (opened bool) {
	for i := range n {
		opened = b.Count(from+time.Duration(i)*step, o, 1, false, false) || opened
	}
	return opened
}

// What opens a breaker, and what does not.
func TestBreaker_Opens(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		runs func(*Breaker) bool
		want bool
	}{
		"a hundred failures":           {func(b *Breaker) bool { return feed(b, 0, ms, 100, Failed) }, true},
		"ninety-nine failures":         {func(b *Breaker) bool { return feed(b, 0, ms, 99, Failed) }, false},
		"half of them":                 {func(b *Breaker) bool { feed(b, 0, ms, 50, Good); return feed(b, 50*ms, ms, 50, Failed) }, true},
		"less than half":               {func(b *Breaker) bool { feed(b, 0, ms, 60, Good); return feed(b, 60*ms, ms, 50, Failed) }, false},
		"successes that are long past": {func(b *Breaker) bool { feed(b, 0, ms, 900, Good); return feed(b, 11_000*ms, ms, 100, Failed) }, true},
		"ninety percent defects":       {func(b *Breaker) bool { feed(b, 0, ms, 10, Good); return feed(b, 10*ms, ms, 90, Defect) }, true},
		"less defects":                 {func(b *Breaker) bool { feed(b, 0, ms, 12, Good); return feed(b, 12*ms, ms, 100, Defect) }, false},
		"what was decided":             {func(b *Breaker) bool { return feed(b, 0, ms, 1000, Decided) }, false},
		"twenty in a row, slowly":      {func(b *Breaker) bool { return feed(b, 0, 600*ms, 20, Failed) }, true},
		"twenty in a row, at once":     {func(b *Breaker) bool { return feed(b, 0, 100*ms, 20, Failed) }, false},
		"nineteen in a row":            {func(b *Breaker) bool { return feed(b, 0, 600*ms, 19, Failed) }, false},
		"a row with one success": {func(b *Breaker) bool {
			feed(b, 0, 600*ms, 19, Failed)
			b.Count(12_000*ms, Good, 1, true, true)
			return feed(b, 13_000*ms, 600*ms, 19, Failed)
		}, false},
		"one failure in two minutes": {func(b *Breaker) bool { return feed(b, 0, 2*time.Minute, 100, Failed) }, false},
		"retries alone": {func(b *Breaker) bool {
			for i := range 1000 {
				if b.Count(time.Duration(i)*100*ms, Failed, 1, true, true) {
					return true
				}
			}
			return false
		}, false},
		"retries over a healthy source": {func(b *Breaker) bool {
			for i := range 1000 {
				b.Count(time.Duration(i)*10*ms, Good, 1, false, false)
				for range 9 {
					if b.Count(time.Duration(i)*10*ms, Failed, 1, true, true) {
						return true
					}
				}
			}
			return false
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.runs(New(defaults)); got != tt.want {
				t.Errorf("opened: %v, want %v", got, tt.want)
			}
			off := defaults
			off.Off = true
			if tt.runs(New(off)) {
				t.Error("it is off, and opened")
			}
		})
	}
}

// Probes come 1, 2, 4, 8, 15, 15 s apart, and 43 of them in ten minutes.
func TestBreaker_ProbesAtGrowingIntervals(t *testing.T) {
	t.Parallel()
	b := New(defaults)
	feed(b, 0, 0, 100, Failed)
	var waits []time.Duration
	last, n := time.Duration(0), 0
	for {
		at, _ := b.Next()
		if at > 10*time.Minute {
			break
		}
		if p := b.Acquire(at - 1); p.OK() {
			t.Fatalf("a probe before %v", at)
		}
		p := b.Acquire(at)
		if !p.Probe() || b.Acquire(at).OK() {
			t.Fatalf("at %v: want one probe, and no other beside it", at)
		}
		b.Release(at, p, Failed, false, false)
		waits = append(waits, (at-last)/time.Second)
		last = at
		n++
	}
	if got := waits[:6]; !slices.Equal(got, []time.Duration{1, 2, 4, 8, 15, 15}) || n != 43 {
		t.Errorf("%d probes, after %v s; want 43, after 1, 2, 4, 8, 15, 15", n, got)
	}
}

// Of the records that wait, three of ten fail for good. Ten good probes in a row would take hours.
func TestBreaker_PoisonAmongTheProbesDoesNotHoldItOpen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := New(defaults)
		feed(b, 0, 0, 100, Failed)
		now := time.Duration(0)
		for n := 0; ; n++ {
			if state, _ := b.State(); state != Open {
				break
			}
			now, _ = b.Next()
			o := Good
			if rapid.IntRange(0, 9).Draw(t, "poison") < 3 {
				o = Failed
			}
			b.Release(now, b.Acquire(now), o, false, false)
			if n > 2000 {
				t.Skip("drawn from one end")
			}
		}
		if now > 10*time.Minute {
			t.Skip("rare") // each excursion succeeds with 57 %
		}
	})
}

// A ninth of the records fails for reasons of its own. That keeps no breaker open when an outage is
// over: a probe that fails after a good one is followed by the next within a second.
func TestBreaker_EndsSoonAlthoughSomeRecordsFail(t *testing.T) {
	t.Parallel()
	late := 0
	for seed := range uint64(1000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := New(defaults)
		feed(b, 0, 0, 100, Failed)
		now, end := time.Duration(0), time.Minute
		for state := Open; state == Open; state, _ = b.State() {
			now, _ = b.Next()
			o := Good
			if now < end || rnd.IntN(9) == 0 {
				o = Failed
			}
			b.Release(now, b.Acquire(now), o, false, false)
		}
		if now > end+30*time.Second {
			late++
		}
	}
	if t.Logf("%d of 1,000 late", late); late > 5 {
		t.Errorf("of 1,000 breakers, %d were open for more than 30 s after the outage, want 5 at most", late)
	}
}

// A probe that hangs does not keep the others from running, and its outcome comes too late.
func TestBreaker_HangingProbeIsOvertaken(t *testing.T) {
	t.Parallel()
	b := New(defaults)
	feed(b, 0, 0, 100, Failed)
	hangs := b.Acquire(time.Second)
	if at, _ := b.Next(); at != 16*time.Second || b.Offers(15*time.Second) {
		t.Errorf("the next probe is at %v, want 16s", at)
	}
	now := 16 * time.Second
	for range 5 {
		b.Release(now, b.Acquire(now), Good, false, false)
	}
	if b.Release(now, hangs, Failed, false, false); b.score != 5 || !b.Offers(now) {
		t.Errorf("the score is %d, want 5 and the next probe at once", b.score)
	}
	for range 5 {
		b.Release(now, b.Acquire(now), Good, false, false)
	}
	if state, _ := b.State(); state != Ramp {
		t.Errorf("the breaker is %v, want ramp", state)
	}
}

// A ramp that fails opens the breaker again, with the interval that it had.
func TestBreaker_RampThatFailsKeepsTheInterval(t *testing.T) {
	t.Parallel()
	b := New(defaults)
	feed(b, 0, 0, 100, Failed)
	now := time.Duration(0)
	for range 3 {
		now, _ = b.Next()
		b.Release(now, b.Acquire(now), Failed, false, false)
	}
	now, _ = b.Next() // 8 s later
	for range 10 {
		b.Release(now, b.Acquire(now), Good, false, false)
	}
	n := 0
	for changed := false; !changed; n++ {
		p := b.Acquire(now)
		if !p.OK() || p.Probe() {
			t.Fatal("the ramp permits nothing")
		}
		changed = b.Release(now, p, Failed, false, false)
	}
	if at, _ := b.Next(); n != 10 || at-now != 15*time.Second {
		t.Errorf("open again after %d failures, and the next probe in %v; want 10, and 15s", n, at-now)
	}
}

// A ramp for which nothing waits ends.
func TestBreaker_IdleRampEnds(t *testing.T) {
	t.Parallel()
	b := New(defaults)
	feed(b, 0, 0, 100, Failed)
	for range 10 {
		b.Release(time.Second, b.Acquire(time.Second), Good, false, false)
	}
	at, _ := b.Next()
	if b.Tick(at-1) || !b.Tick(at) {
		t.Errorf("the ramp does not end at %v", at)
	}
	if state, _ := b.State(); state != Closed {
		t.Errorf("the breaker is %v", state)
	}
}

// While the budget is tight, a retry that runs counts as failed. One that succeeds costs nothing.
func TestBreaker_BudgetCountsRunningRetriesWhileTight(t *testing.T) {
	t.Parallel()
	b := New(defaults)
	for range 1000 { // none fails
		b.BeginRetry()
	}
	if b.HoldsRetries(0) {
		t.Error("retries that run cost something")
	}
	for range 1000 {
		b.EndRetry()
		b.Count(0, Good, 1, true, true)
	}
	for range 199 {
		b.Count(0, Failed, 1, true, true)
	}
	if b.HoldsRetries(0) { // 199 of 1199, of which a fifth is 239
		t.Error("the budget is used up by less than a fifth")
	}
	for range 60 {
		b.Count(0, Failed, 1, true, true)
	}
	if !b.HoldsRetries(0) {
		t.Error("259 of 1259 have failed again, and retries run")
	}
	b.Count(9*time.Second, Failed, 90, true, true)
	if !b.HoldsRetries(9 * time.Second) {
		t.Error("the budget forgets within its window")
	}
	// Only the 90 are left, and the budget is still tight: ten may run.
	for i := range 10 {
		if b.HoldsRetries(10 * time.Second) {
			t.Fatalf("holds retries after %d of ten", i)
		}
		b.BeginRetry()
	}
	if !b.HoldsRetries(10 * time.Second) {
		t.Error("more run than may fail")
	}
}

// Rests count between two times only, and the one that goes on counts until now.
func TestRests_Since(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	var r Rests
	r.End(at(1))
	r.Begin(at(10))
	r.Begin(at(12)) // goes on
	r.End(at(20))
	r.Begin(at(40))
	for _, tt := range []struct{ since, now, want int }{
		{0, 50, 20}, {15, 50, 15}, {25, 35, 0}, {0, 15, 5}, {45, 50, 5}, {60, 50, 0}, {12, 13, 1},
	} {
		if got := r.Since(at(tt.since), at(tt.now)); got != time.Duration(tt.want)*time.Second {
			t.Errorf("from %d to %d: %v, want %d s", tt.since, tt.now, got, tt.want)
		}
	}
	for i := range 2 * mostRests {
		r.Begin(at(100 + 2*i))
		r.End(at(101 + 2*i))
	}
	if got := r.Since(at(0), at(10_000)); got != mostRests*time.Second {
		t.Errorf("%d rests are kept, of which the last %d count: %v", len(r.all), mostRests, got)
	}
}

// opened returns a breaker whose probes are due from a second on.
func opened(set Settings) *Breaker {
	b := New(set)
	feed(b, 0, 0, 100, Failed)
	return b
}

// ramped returns a breaker whose ramp began at the time that it returns.
func ramped(set Settings) (*Breaker, time.Duration) {
	b, now := opened(set), time.Second
	for range set.Probes {
		b.Release(now, b.Acquire(now), Good, false, false)
	}
	return b, now
}

// Each run takes longer than the longest interval between probes, so that each probe is overtaken
// before it succeeds. The breaker took no outcome but that of the last one, and stayed open for
// ever.
func TestBreaker_SlowProbesCloseIt(t *testing.T) {
	t.Parallel()
	const takes = 20 * time.Second
	b := opened(defaults)
	running := map[time.Duration][]Permit{}
	for now := time.Second; ; now += time.Second {
		for _, p := range running[now] {
			b.Release(now, p, Good, false, false)
		}
		if state, _ := b.State(); state != Open {
			break
		}
		if p := b.Acquire(now); p.OK() {
			running[now+takes] = append(running[now+takes], p)
		}
		if now > 5*time.Minute {
			t.Fatalf("open after %v, though each probe was good after %v", now, takes)
		}
	}
}

// Handlers that never return hold ten probes. More follow, at growing intervals.
func TestBreaker_ManyHangingProbesAreOvertaken(t *testing.T) {
	t.Parallel()
	b := opened(defaults)
	n, last := 0, time.Duration(0)
	for now := time.Duration(0); now < time.Hour; now += time.Second {
		if b.Acquire(now).OK() {
			n++
			last = now
		}
	}
	if n < 20 || n > 40 || last < 50*time.Minute {
		t.Errorf("%d probes within an hour, the last one after %v; want some 30, and none too long ago", n, last)
	}
}

// All runs of the ramp hang. They hold up the others no longer than a probe does.
func TestBreaker_HangingRunsDoNotHoldUpTheRamp(t *testing.T) {
	t.Parallel()
	b, now := ramped(defaults)
	for b.Acquire(now).OK() {
		continue
	}
	for range 16 {
		at, ok := b.Next()
		if !ok || at <= now {
			t.Fatalf("the next look is at %v, %v; want one after %v", at, ok, now)
		}
		now = at
		b.Tick(now)
	}
	if state, _ := b.State(); state == Ramp && b.Free() == 0 {
		t.Fatalf("no run is permitted %v after two that hang", now)
	}
	// One record after the other comes, and runs well.
	for range 30 {
		if p := b.Acquire(now); p.OK() {
			b.Release(now, p, Good, false, false)
		}
		now += time.Second
		b.Tick(now)
	}
	if state, _ := b.State(); state != Closed {
		t.Errorf("the breaker is %v beside two runs that hang", state)
	}
}

// Records wait for the slots of a ramp, and run. It goes on, however often it is looked at.
func TestBreaker_RampWithWorkDoesNotEndEarly(t *testing.T) {
	t.Parallel()
	b, now := ramped(defaults)
	for range 20 {
		p := b.Acquire(now)
		for b.Acquire(now).OK() {
			continue
		}
		now += 600 * time.Millisecond
		b.Tick(now) // before the first run of the ramp ended
		if state, _ := b.State(); state != Ramp {
			t.Fatalf("the breaker is %v at %v, and records wait", state, now)
		}
		b.Release(now, p, Void, false, false)
	}
}

// With a share of 1, and after the good probes, the ramp's failures never reached the share.
func TestBreaker_RampInWhichAllFailOpensAgain(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.5, 0.9, 1} {
		set := defaults
		set.Failures = share
		b, now := ramped(set)
		n := 0
		for changed := false; !changed; n++ {
			if n > 20 {
				t.Fatalf("share %v: %d runs of the ramp have failed, and it goes on", share, n)
			}
			changed = b.Release(now, b.Acquire(now), Failed, false, false)
		}
		if state, _ := b.State(); state != Open {
			t.Errorf("share %v: the breaker is %v after %d failures", share, state, n)
		}
	}
}
