package guard

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidingkafka/siding/internal/cases"
)

// play has a record of the source run each 50 ms, and returns the time after the last one.
func play(g *Guard, from time.Duration, n int, o func(i int) Outcome) time.Duration {
	for i := range n {
		if r, ok := g.Source(from, false); ok {
			g.End(from+5*time.Millisecond, r, o(i))
		}
		from += 50 * time.Millisecond
	}
	return from
}

// all and some are outcomes: always the same one, and a failure once in a while.
func all(o Outcome) func(int) Outcome { return func(int) Outcome { return o } }

func oneIn(n int) func(int) Outcome {
	return func(i int) Outcome {
		if i%n == 0 {
			return Failed
		}
		return Good
	}
}

// held returns a guard whose rounds of probes begin a second after the time that it returns.
func held(t *testing.T) (*Guard, time.Duration) {
	t.Helper()
	g := New(defaults)
	now := play(g, 0, 130, all(Failed))
	expect(t, g, Held)
	_, since := g.State()
	return g, max(since, now-time.Second)
}

func expect(t *testing.T, g *Guard, want State) {
	t.Helper()
	if got, since := g.State(); got != want {
		runs, bad := g.Share()
		t.Fatalf("the guard is %v since %v, by %d bad ones of %d runs; want %v", got, since, bad, runs, want)
	}
}

func TestGuard_StatesFollowTheShare(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		runs int
		o    func(int) Outcome
		want State
	}{
		"no runs":                          {0, nil, Closed},
		"few fail":                         {enough - 1, all(Failed), Closed},
		"enough fail":                      {enough, all(Failed), Strained},
		"a sixth fails":                    {300, oneIn(6), Closed},
		"a fifth fails":                    {300, oneIn(5), Strained},
		"all fail, too few to hold":        {evidence - 1, all(Failed), Strained},
		"all fail":                         {evidence + 1, all(Failed), Held},
		"defects alone strain nothing":     {evidence - 1, all(Defect), Closed},
		"defects hold":                     {evidence + 1, all(Defect), Held},
		"one in a hundred is good":         {300, func(i int) Outcome { return Failed - Outcome(min(1, i%100/99)) }, Held},
		"one in thirty is good":            {5000, func(i int) Outcome { return Failed - Outcome(min(1, i%30/29)) }, Strained},
		"what is cut off says nothing":     {300, all(Void), Closed},
		"answers are good":                 {300, all(Good), Closed},
		"nine in ten fail for a long time": {5000, func(i int) Outcome { return Failed - Outcome(min(1, i%10/9)) }, Strained},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := New(defaults)
			play(g, 0, tt.runs, tt.o)
			expect(t, g, tt.want)
		})
	}
}

// What runs in a row, and is counted when it ended, leads to the same states.
func TestGuard_CountsRunsOfAMoment(t *testing.T) {
	t.Parallel()
	g, now := New(defaults), time.Duration(0)
	for range 30 {
		g.Ran(now, Good, 40)
		now += time.Second
	}
	expect(t, g, Closed)
	if g.Ran(now, Failed, 100); true {
		expect(t, g, Strained)
	}
	for range 11 {
		now += time.Second
		g.Ran(now, Failed, 20)
	}
	expect(t, g, Held)
	if g.Ran(now, Good, 1000); true { // they began before the hold
		expect(t, g, Held)
	}
}

// A strained topic is not closed as soon as less than a fifth fails: a state that changes each
// second lets retries through.
func TestGuard_StrainEndsBelowItsShare(t *testing.T) {
	t.Parallel()
	g := New(defaults)
	now := play(g, 0, 200, oneIn(4))
	expect(t, g, Strained)
	now = play(g, now, 1000, oneIn(6))
	expect(t, g, Strained)
	now = play(g, now, 200, oneIn(7))
	expect(t, g, Closed)
	// Not before it was below for ten seconds.
	now = play(g, now, 200, oneIn(4))
	expect(t, g, Strained)
	now = play(g, now, 180, all(Good))
	expect(t, g, Strained)
	play(g, now, 200, all(Good))
	expect(t, g, Closed)
}

// Bursts of which the failures end first are no outage, and the gap between them is no time.
func TestGuard_BurstIsOneSample(t *testing.T) {
	t.Parallel()
	g := New(defaults)
	for burst := range 30 {
		now := time.Duration(burst) * 12 * time.Second
		var runs []Run
		for range 400 {
			r, ok := g.Source(now, false)
			if !ok {
				t.Fatalf("burst %d: the source is held", burst)
			}
			runs = append(runs, r)
		}
		for i, r := range runs {
			if i < 200 {
				g.End(now+time.Millisecond, r, Failed)
			} else {
				g.End(now+time.Second, r, Good)
			}
		}
	}
	expect(t, g, Strained)
}

// opened returns a guard that had its first good probe.
func opened(t *testing.T) (*Guard, time.Duration) {
	t.Helper()
	g, _ := held(t)
	now, _ := g.Next()
	g.Tick(now, 0)
	r, _ := g.Source(now, false)
	g.End(now, r, Good)
	expect(t, g, Held)
	return g, now
}

// Runs of an earlier hold, and of before one, change nothing in a later one.
func TestGuard_LateRuns(t *testing.T) {
	t.Parallel()
	g := New(defaults)
	before, _ := g.Source(0, false)
	now := play(g, 0, 130, all(Failed))
	at, _ := g.Next()
	g.Tick(at, 0)
	probe, _ := g.Source(at, false)
	g.release()
	now = play(g, max(now, at), 130, all(Failed))
	expect(t, g, Held)
	for _, r := range []Run{before, probe} {
		if g.End(now, r, Good) || g.hold.running != 0 || g.hold.width != 0 {
			t.Errorf("a run of before the hold changed it: %+v", g.hold)
		}
	}
}

// While the source is idle, good retries are the sample, and bad ones are not.
func TestGuard_IdleSourceIsJudgedByGoodRetries(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{Good, Failed} {
		g := New(defaults)
		now := play(g, 0, 100, all(Failed))
		expect(t, g, Strained)
		n := 0
		for ; n < 1000; n++ {
			now += time.Second
			if r, ok := g.Retry(now); ok && g.End(now, r, o) {
				break
			}
		}
		if closed := n < 1000; closed != (o == Good) {
			t.Errorf("outcome %v: closed %v after %d retries", o, closed, n)
		}
	}
}

// A process that gets its lanes in an outage has no other sample than retries, while the source is
// idle: those that fail strain the topic.
func TestGuard_RetriesStrainATopicWithAnIdleSource(t *testing.T) {
	t.Parallel()
	for o, want := range map[Outcome]State{Good: Closed, Failed: Strained} {
		g := New(defaults)
		for now := idle; now < 10*time.Minute; now += time.Second {
			if r, ok := g.Retry(now); ok {
				g.End(now, r, o)
			}
		}
		expect(t, g, want)
	}
}

// A batch that failed, with an idle source behind it, is held by no good retry.
func TestGuard_IdleSourceIsNotHeld(t *testing.T) {
	t.Parallel()
	g := New(defaults)
	g.Ran(0, Failed, 10_000)
	expect(t, g, Strained)
	for now := time.Duration(0); now < 10*time.Minute; now += time.Second {
		if r, ok := g.Retry(now); ok {
			g.End(now, r, Good)
		}
		if s, _ := g.State(); s == Held {
			t.Fatalf("held after %v", now)
		}
	}
	expect(t, g, Closed)
}

// A source of which an hour brings too few runs for a share does not stay strained for ever, or
// while it is idle. The strain lasts as long as the few fail, and as failures are free.
func TestGuard_StrainOfASlowSourceEnds(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		each   time.Duration // a run; 0 for none
		o      Outcome
		outage time.Duration
		want   time.Duration // 0 for never
	}{
		{each: 2 * time.Minute, o: Good, want: time.Hour},
		{each: 2 * time.Minute, o: Failed},
		{each: 2 * time.Minute, o: Good, outage: 3 * time.Hour, want: 3 * time.Hour},
		{want: time.Hour},
	} {
		for _, from := range []State{Strained, Held} {
			set := defaults
			set.MaxOutage = is.outage
			g := New(set)
			now := play(g, 0, map[State]int{Strained: 100, Held: 130}[from], all(Failed))
			expect(t, g, from)
			if from == Held { // the source falls idle in it
				for now += time.Second; !g.Tick(now, 0) && now < time.Minute; now += time.Second {
				}
			}
			began, ran := now, now
			for now < began+24*time.Hour {
				now += 30 * time.Second
				if g.Tick(now, 0) || is.each > 0 && now-ran >= is.each && g.Ran(now, is.o, 1) {
					break
				}
				if is.each > 0 && now-ran >= is.each {
					ran = now
				}
			}
			s, _ := g.State()
			if closed := s == Closed; closed != (is.want > 0) || closed && (now-began < is.want-time.Minute || now-began > is.want+old) {
				t.Errorf("from %v, %+v: %v after %v", from, is, s, now-began)
			}
		}
	}
}

// A clock that jumps by an hour, forward or back, leaves no state for good.
func TestGuard_ClockJumps(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 24 * time.Hour, math.MaxInt64 / 4} {
		for _, runs := range []int{0, 30, 100, 130} {
			g := New(defaults)
			play(g, 2*time.Hour, runs, all(Failed))
			from, last := 2*time.Hour+jump, time.Duration(0)
			for now := from; now < from+3*time.Hour; now += time.Second {
				g.Tick(now, 0)
				if r, ok := g.Source(now, false); ok {
					g.End(now, r, Good)
				}
				if r, ok := g.Retry(now); ok {
					g.End(now, r, Good)
				}
				if _, since := g.State(); since < last {
					t.Fatalf("the guard is in its state since %v, and was in another since %v", since, last)
				} else {
					last = since
				}
			}
			expect(t, g, Closed)
		}
	}
}

// Settings that make no sense neither panic nor hold for good.
func TestGuard_AnySettings(t *testing.T) {
	t.Parallel()
	shares := []float64{0, 1, math.NaN(), -1, 2, math.Inf(1), math.Inf(-1), 1e-300, 1 - 1e-16}
	for _, hold := range shares {
		for _, strain := range shares {
			g := New(Settings{Hold: hold, Strain: strain})
			now := play(g, 0, 300, all(Failed))
			if s, _ := g.State(); hold != 1e-300 && s != Held {
				t.Errorf("%v, %v: all fail, and the guard is %v", hold, strain, s)
			}
			for range 200 {
				now += time.Second
				g.Tick(now, 0)
				if r, ok := g.Retry(now); ok {
					g.End(now, r, Good)
				}
				now = play(g, now, 5, all(Good))
			}
			if s, _ := g.State(); s == Held {
				t.Errorf("%v, %v: held, though all is good", hold, strain)
			}
		}
	}
	off := New(Settings{Off: true, Hold: 0.95, Strain: 0.2, BudgetOff: true})
	play(off, 0, 1000, all(Failed))
	expect(t, off, Closed)
	for range 1000 {
		if _, ok := off.Retry(0); !ok {
			t.Fatal("a retry waits for a budget that is off")
		}
	}
}

// Whatever happened: a hold has a next round, retries are within their budget, and once all is
// good, a topic whose source has records is closed within two minutes.
func TestGuard_ComesBackFromAnywhere(t *testing.T) {
	t.Parallel()
	for _, seed := range cases.Seeds(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		g, now := New(defaults), time.Duration(0)
		var running []Run
		bad := rng.Float64()
		for range 3000 {
			now += time.Duration(rng.IntN(400)) * time.Millisecond
			switch rng.IntN(8) {
			case 0:
				g.Tick(now, 0)
			case 1:
				if r, ok := g.Retry(now); ok {
					running = append(running, r)
				}
			case 2:
				bad = min(1, rng.Float64()*1.3)
			case 3, 4:
				if n := len(running); n > 0 {
					i := rng.IntN(n)
					o := Good
					if rng.Float64() < bad {
						o = Failed + Outcome(rng.IntN(2))
					} else if rng.IntN(9) == 0 {
						o = Void
					}
					g.End(now, running[i], o)
					running = append(running[:i], running[i+1:]...)
				}
			default:
				if r, ok := g.Source(now, false); ok && rng.IntN(50) > 0 { // one in 50 hangs
					running = append(running, r)
				}
			}
			if at, ok := g.Next(); ok && g.state == Held && at > g.now+longestWait {
				t.Fatalf("seed %d: the next round is at %v, and it is %v", seed, at, g.now)
			}
		}
		for _, r := range running {
			g.End(now, r, Good)
		}
		for end := now + 2*time.Minute; now < end; now += 20 * time.Millisecond {
			g.Tick(now, 0)
			if r, ok := g.Source(now, false); ok {
				g.End(now, r, Good)
			}
		}
		if s, since := g.State(); s != Closed {
			t.Fatalf("seed %d: the guard is %v since %v, and it is %v", seed, s, since, now)
		}
	}
}

// A run that never began ends without harm.
func TestGuard_ZeroRun(t *testing.T) {
	t.Parallel()
	for _, g := range []*Guard{New(defaults), func() *Guard { g, _ := held(t); return g }()} {
		before := *g
		if g.End(g.now, Run{}, Failed) || *g != before {
			t.Errorf("the zero run changed %+v to %+v", before, *g)
		}
	}
}
