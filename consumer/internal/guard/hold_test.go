package guard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// In a hold nothing runs but probes: up to twenty, and ten when it lasts.
func TestGuard_HoldRunsRoundsOfProbes(t *testing.T) {
	t.Parallel()
	g, now := held(t)
	if _, ok := g.Retry(now); ok {
		t.Error("a retry runs in a hold")
	}
	var rounds []string
	from := now
	for now < from+2*time.Minute {
		at, ok := g.Next()
		if !ok {
			t.Fatal("a hold has no next round")
		}
		now = at
		g.Tick(now, 0)
		n := 0
		for g.Probes() && n < 100 {
			r, ok := g.Source(now, false)
			if !ok || !r.Probe() {
				t.Fatalf("probe %d of the round at %v: %v, %v", n, now, r, ok)
			}
			g.End(now, r, Failed)
			n++
		}
		rounds = append(rounds, fmt.Sprintf("%v:%d", (now-from).Round(time.Second), n))
	}
	if got, want := fmt.Sprint(rounds), "[1s:20 3s:20 7s:20 15s:10 30s:10 45s:10 1m0s:10 1m15s:10 1m30s:10 1m45s:10 2m0s:10]"; got != want {
		t.Errorf("rounds of probes:\n%s, want\n%s", got, want)
	}
	expect(t, g, Held)
}

// After a good probe two run at a time, then three, and the failures are none of probes.
func TestGuard_HoldEndsStepByStep(t *testing.T) {
	t.Parallel()
	g, now := opened(t)
	var runs []Run
	for want := 2; want < 8; want++ {
		for {
			r, ok := g.Source(now, false)
			if !ok {
				break
			}
			if r.Probe() {
				t.Fatal("a run is a probe, though one was good")
			}
			runs = append(runs, r)
		}
		if len(runs) != want {
			t.Fatalf("%d run at a time, want %d", len(runs), want)
		}
		g.End(now, runs[0], Good)
		runs = runs[1:]
		expect(t, g, Held) // others wait
	}
	for _, r := range runs {
		g.End(now, r, Good)
	}
	expect(t, g, Strained)
	play(g, now, 5*enough, all(Good))
	expect(t, g, Closed)
}

// One good probe may be chance: if all fail behind it, the rounds come back.
func TestGuard_HoldGoesOnAfterOneGoodProbe(t *testing.T) {
	t.Parallel()
	g, now := opened(t)
	n := 0
	for ; n < 1000; n++ {
		r, ok := g.Source(now, false)
		if !ok {
			break
		}
		g.End(now, r, Failed)
	}
	if n != inVain {
		t.Errorf("%d ran after one good probe, want %d", n, inVain)
	}
	expect(t, g, Held)
}

// At a share below Hold a hold ends, though most runs fail while it does.
func TestGuard_HoldEndsWhileMostFail(t *testing.T) {
	t.Parallel()
	g, now := held(t)
	rng, from := rand.New(rand.NewPCG(1, 1)), now
	for s, _ := g.State(); s == Held; s, _ = g.State() {
		if now > from+30*time.Second {
			t.Fatal("held for half a minute, though a tenth is good")
		}
		now += 10 * time.Millisecond
		g.Tick(now, 0)
		if r, ok := g.Source(now, false); ok {
			g.End(now, r, Failed-Outcome(1-min(1, rng.IntN(10))))
		}
	}
	expect(t, g, Strained)
}

// What keeps records from running changes, again and again. Each has its own time, of which it uses
// a share.
func TestGuard_HoldHasTheTimeOfWhatKeepsIt(t *testing.T) {
	t.Parallel()
	ends := func(patience func(lasts time.Duration) time.Duration) time.Duration {
		g, began := held(t)
		for now := began; ; now, _ = g.Next() {
			if lasts := now - began; g.Tick(now, patience(lasts)) || lasts > 2*time.Hour {
				return lasts
			}
		}
	}
	for name, is := range map[string]struct {
		patience    func(lasts time.Duration) time.Duration
		least, most time.Duration
	}{
		"a pause of ten minutes, and then no lanes": {func(lasts time.Duration) time.Duration {
			if lasts < 10*time.Minute {
				return time.Hour
			}
			return hanging
		}, 13 * time.Minute, 15 * time.Minute},
		"a pause each half minute": {func(lasts time.Duration) time.Duration {
			if lasts%time.Minute < 30*time.Second {
				return time.Hour
			}
			return quiet
		}, quiet, 3 * quiet},
		"a pause": {func(time.Duration) time.Duration { return time.Hour }, time.Hour, time.Hour + longestWait},
	} {
		if lasts := ends(is.patience); lasts < is.least || lasts > is.most {
			t.Errorf("%s: the hold lasts %v, want %v to %v", name, lasts, is.least, is.most)
		}
	}
}

// A record that fails for good, beside an idle source, holds up its retries for MaxOutage. It did
// for ever.
func TestGuard_ProbesThatFailAgainKeepNoHold(t *testing.T) {
	t.Parallel()
	g, began := held(t)
	for now, first := began, true; ; now, _ = g.Next() {
		if lasts := now - began; g.Tick(now, time.Hour) {
			if lasts < time.Hour {
				t.Errorf("the hold ended after %v", lasts)
			}
			return
		} else if lasts > time.Hour+2*longestWait {
			t.Fatalf("the hold goes on after %v", lasts)
		}
		if r, ok := g.Source(now, !first); ok {
			g.End(now, r, Defect)
			first = false
		}
	}
}

// Once a probe was good, a hold without records ends soon: retries wait. It goes on for lanes that
// may have some.
func TestGuard_HoldAfterAGoodProbe(t *testing.T) {
	t.Parallel()
	for patience, most := range map[time.Duration]time.Duration{quiet: longestWait + 2*firstWait, time.Hour: time.Hour + longestWait} {
		g, _ := held(t)
		now, _ := g.Next()
		g.Tick(now, patience)
		r, ok := g.Source(now, false)
		if !ok {
			t.Fatal("no probe")
		}
		g.End(now, r, Good)
		began := now
		for !g.Tick(now, patience) && now-began < 2*time.Hour {
			now, _ = g.Next()
		}
		if lasts := now - began; lasts > most || lasts < most-2*longestWait {
			t.Errorf("it lasts %v, want %v", lasts, most)
		}
		expect(t, g, Strained)
	}
}

func TestEnv_PatienceIsForLanesThatAreKept(t *testing.T) {
	t.Parallel()
	free, waits, fails, kept, over := &fakeLane{}, &fakeLane{waits: Records}, &fakeLane{waits: Failing}, &fakeLane{waits: Kept}, &fakeLane{waits: Over}
	for _, c := range []struct {
		held  bool
		lanes []Lane
		want  time.Duration
	}{{false, nil, 0}, {true, nil, hanging}, {true, []Lane{free}, quiet}, {true, []Lane{kept}, time.Hour}, {true, []Lane{free, kept}, quiet}, {true, []Lane{kept, waits}, hanging}, {true, []Lane{kept, over}, time.Hour}, {true, []Lane{over}, hanging}, {true, []Lane{free, waits, fails}, time.Hour}} {
		e := Env{Lanes: func() []Lane { return c.lanes }}
		if got := e.patience(c.held, time.Hour); got != c.want {
			t.Errorf("held %v, %d lanes: %v, want %v", c.held, len(c.lanes), got, c.want)
		}
	}
}

// A hold that no record waits for ends: what waits in tiers is bounded by the budget.
func TestGuard_HoldOfAnIdleSourceEnds(t *testing.T) {
	t.Parallel()
	g, began := held(t)
	at, _ := g.Next()
	for !g.Tick(at, quiet) {
		if at, _ = g.Next(); at-began > quiet+longestWait {
			t.Fatalf("no record ran for %v, and the hold goes on", at-began)
		}
	}
	if at-began < quiet {
		t.Errorf("the hold ended after %v", at-began)
	}
	expect(t, g, Strained)
	if _, ok := g.Retry(at); !ok {
		t.Error("no retry may run")
	}
}

// A handler that hangs in probes leaves one to each round. Once there is no worker left, the hold
// goes on for five minutes.
func TestGuard_HangingProbes(t *testing.T) {
	t.Parallel()
	g, now := held(t)
	total, last := 0, now
	for n := range 1000 {
		if s, _ := g.State(); s != Held {
			break
		}
		now, _ = g.Next()
		g.Tick(now, 0)
		for g.Probes() && n < 10 && total < 1000 {
			g.Source(now, false)
			total, last = total+1, now
		}
	}
	expect(t, g, Strained)
	if total != 2*round+9 || now < last+hanging || now > last+hanging+longestWait {
		t.Errorf("%d probes hang; the hold ended %v after the last", total, now-last)
	}
}

// Runs that hang behind the first good probe hold up no others for longer than a second.
func TestGuard_HangingRunsBehindAGoodProbe(t *testing.T) {
	t.Parallel()
	g, now := opened(t)
	for seconds := range 5 {
		n := 0
		for ; n < 100; n++ {
			if _, ok := g.Source(now, false); !ok {
				break
			}
		}
		if n != 2 {
			t.Fatalf("%d s after a good probe: %d more may run, want 2", seconds, n)
		}
		now, _ = g.Next()
		g.Tick(now, 0)
	}
}

// A probe that was none gives its place to another.
func TestGuard_VoidProbe(t *testing.T) {
	t.Parallel()
	g, _ := held(t)
	now, _ := g.Next()
	g.Tick(now, 0)
	for n := range 100 {
		r, ok := g.Source(now, false)
		if !ok {
			t.Fatalf("no probe after %d that were none", n)
		}
		g.End(now, r, Void)
	}
}
