package guard

import "time"

// State is the state of a guard.
type State uint8

const (
	// Closed lets all records run.
	Closed State = iota
	// Strained lets all records of the source run. A retryable failure is no attempt, and all
	// retries count against the budget.
	Strained
	// Held lets single records of the source run, as probes.
	Held
)

// String returns the state's name in health and metrics.
func (s State) String() string { return [...]string{"closed", "strained", "held"}[s] }

// Settings are the thresholds. There are no defaults here. A share that is not between 0 and 1
// counts as 1.
type Settings struct {
	Off bool // the states, not the budget
	// Hold is the share of bad runs below which the source runs. Strain is the share of retryable
	// failures from which on the topic is strained, and the share of retries in all runs from then
	// on.
	Hold, Strain float64
	BudgetOff    bool
	// MaxOutage is for how long after its first failure those of a record are no attempts.
	MaxOutage time.Duration
}

const (
	// idle is how long no record of the source ran when good retries count in its place.
	idle = 10 * time.Second
	// calm is how long a strained topic has less failures before it is closed. A state that changes
	// in between lets retries through.
	calm = 10 * time.Second
)

// Guard is the guard of one topic in one process. The times that its methods get are since any one
// moment. A time that is earlier than the last one counts as that.
type Guard struct {
	set      Settings
	now      time.Duration
	state    State
	since    time.Duration
	runs     int64         // that the measure had at the last change of the state
	bad      int64         // of these
	strained time.Duration // the share was that of Strain, last
	measure  measure
	retries  measure // of a closed guard beside an idle source, since the last change of the state
	budget   budget
	hold     hold
	ran      time.Duration // a record of the source, last
}

// Run is a run that began. The zero value is none.
type Run struct {
	bucket int64
	epoch  uint32 // of the hold under which it runs, else 0
	retry  bool
	paid   bool // the budget has paid for it
	probe  bool
}

// Began reports whether there is a run.
func (r Run) Began() bool { return r != Run{} }

// Held reports whether the run is one of those that a hold lets through.
func (r Run) Held() bool { return r.epoch != 0 }

// Probe reports whether the run is a probe. See the package about a failed one.
func (r Run) Probe() bool { return r.probe }

// New makes a closed guard.
func New(set Settings) *Guard {
	set.Hold, set.Strain = proper(set.Hold), proper(set.Strain)
	return &Guard{set: set, budget: budget{each: set.Strain / less(set.Strain), tokens: saved}}
}

// proper returns a share between 0 and 1, and 1 in place of anything else.
func proper(share float64) float64 {
	if share > 0 && share < 1 {
		return share
	}
	return 1
}

// State returns the state, and since when.
func (g *Guard) State() (State, time.Duration) { return g.state, g.since }

// Share returns how many runs of the source led to the state, and how many of them were bad.
func (g *Guard) Share() (runs, bad int64) { return g.runs, g.bad }

// Probes reports whether records of the source may run now, but as probes only.
func (g *Guard) Probes() bool { return g.state == Held && g.hold.width == 0 && g.hold.probes > 0 }

// Free returns how many more runs there may be at a time while a hold ends.
func (g *Guard) Free() int { return max(g.hold.width-g.hold.running, 0) }

func (g *Guard) turn(now time.Duration) { g.now = max(g.now, now) }

// Source begins a run of a source record, if one may run now. fails says that it has failed as a
// probe before.
func (g *Guard) Source(now time.Duration, fails bool) (r Run, ok bool) {
	g.turn(now)
	if g.state == Held {
		if r.probe, ok = g.hold.begin(g.now, fails); !ok {
			return Run{}, false
		}
		r.epoch = g.hold.epoch
	}
	g.ran = g.now
	g.budget.source(g.now, 1)
	r.bucket = g.measure.begin(g.now, 1)
	return r, true
}

// Ran counts runs of source records that ended alike, within the moment in which they began. It is
// for records that run one after the other, while none are held. It reports whether the state is
// another one now.
func (g *Guard) Ran(now time.Duration, o Outcome, n int64) (changed bool) {
	g.turn(now)
	g.ran = g.now
	g.budget.source(g.now, n)
	g.measure.end(g.measure.begin(g.now, n), o, n)
	return g.judge(o)
}

// HoldsRetries reports whether no record that failed before may run now.
func (g *Guard) HoldsRetries(now time.Duration) bool {
	g.turn(now)
	return g.state == Held || !g.set.BudgetOff && !g.budget.has(g.now, &g.measure)
}

// Retry begins a run of a record that failed before, if one may run now.
func (g *Guard) Retry(now time.Duration) (r Run, ok bool) {
	if g.HoldsRetries(now) {
		return r, false
	}
	r = Run{retry: true, paid: g.state == Strained}
	if r.paid {
		g.budget.tokens--
	}
	return r, true
}

// End ends a run that Source or Retry began. It reports whether the state is another one now.
func (g *Guard) End(now time.Duration, r Run, o Outcome) (changed bool) {
	g.turn(now)
	if r.retry {
		return g.retried(r, o)
	}
	g.measure.end(r.bucket, o, 1)
	if r.epoch == 0 || r.epoch != g.hold.epoch || g.state != Held {
		return g.judge(o)
	}
	runs, _, bad, _ := g.measure.sum(g.now)
	if !g.hold.end(g.now, r.probe, o) || float64(bad) >= g.set.Hold*float64(runs) {
		return false
	}
	return g.release()
}

// retried ends a retry. One that began while nothing was wrong costs something only if it fails.
// While the source is idle, retries are the only sample.
func (g *Guard) retried(r Run, o Outcome) (changed bool) {
	if !r.paid && o.bad() {
		g.budget.tokens--
	}
	switch {
	case g.set.Off || g.now-g.ran < idle:
	case g.state == Closed:
		g.retries.end(g.retries.begin(g.now, 1), o, 1)
		return g.judgeRetries()
	case g.state == Strained && o == Good:
		g.measure.end(g.measure.begin(g.now, 1), Good, 1)
		return g.judge(Good)
	}
	return false
}

// judgeRetries begins a strain if many retries fail, and the source has too few runs for a
// judgement: a process that began in an outage, or got its lanes in one, has no other sample.
func (g *Guard) judgeRetries() (changed bool) {
	if runs, _, _, _ := g.measure.sum(g.now); runs >= enough {
		return false
	}
	runs, failed, bad, _ := g.retries.sum(g.now)
	return g.strains(runs, failed) && g.strain(runs, bad)
}

// judge changes the state if there is reason to, after a run that was not held.
func (g *Guard) judge(o Outcome) (changed bool) {
	if g.set.Off || g.state == Held {
		return false
	}
	runs, failed, bad, full := g.measure.sum(g.now)
	if full && o.bad() && float64(bad) >= g.set.Hold*float64(runs) {
		if all, allBad, ok := g.measure.outweighs(g.now, g.set.Hold); ok {
			g.hold.start(g.now)
			return g.to(Held, all, allBad)
		}
	}
	if o.failed() && !g.strains(runs, failed) {
		all, atLeast, allBad := g.measure.least(g.now)
		if all >= enough && g.strains(all+evidence, atLeast) {
			return g.strain(all, allBad)
		}
	}
	switch {
	case g.strains(runs, failed):
		return g.strain(runs, bad)
	case runs >= enough && float64(failed) < g.eased()*float64(runs) && g.now-g.strained >= calm:
		return g.to(Closed, runs, bad)
	}
	return false
}

// strains reports whether so many runs, of which so many failed, strain a topic.
func (g *Guard) strains(runs, failed int64) bool {
	return runs >= enough && float64(failed) >= g.set.Strain*float64(runs)
}

// strain begins a strain, or lets it go on.
func (g *Guard) strain(runs, bad int64) (changed bool) {
	g.strained = g.now
	return g.to(Strained, runs, bad)
}

// release ends a hold. What the probes said is no sample of what runs now.
func (g *Guard) release() (changed bool) {
	runs, _, bad, _ := g.measure.sum(g.now)
	g.measure.clear()
	return g.to(Strained, runs, bad)
}

func (g *Guard) to(s State, runs, bad int64) (changed bool) {
	if g.state == s {
		return false
	}
	g.state, g.since, g.runs, g.bad = s, g.now, runs, bad
	g.retries.clear()
	return true
}

// Next returns when Tick is due; ok is false while the guard is closed.
func (g *Guard) Next() (at time.Duration, ok bool) {
	if g.state == Held {
		return g.hold.at, true
	}
	return max(g.strained, g.since) + max(g.set.MaxOutage, old), g.state == Strained
}

// Tick begins a round of probes, and ends a hold that no record of the source has probed for a
// round, and for a time, which depends on what may wait: see [Env]. It ends a strain that too few
// runs confirm. It reports whether the state is another one now.
func (g *Guard) Tick(now, patience time.Duration) (changed bool) {
	g.turn(now)
	if at, ok := g.Next(); !ok || g.now < at {
		return false
	}
	if g.state == Strained {
		return g.forget()
	}
	if g.hold.unused(g.now, patience) {
		return g.release()
	}
	g.hold.next(g.now)
	return false
}

// forget ends a strain that the last runs, however few, do not show any more. No record that failed
// in it has free failures left.
func (g *Guard) forget() (changed bool) {
	runs, failed, bad, _ := g.measure.sum(g.now)
	if failed > 0 && float64(failed) >= g.eased()*float64(runs) {
		g.strained = g.now
		return false
	}
	return g.to(Closed, runs, bad)
}

// eased is the share of retryable failures below which a strain ends.
func (g *Guard) eased() float64 { return 0.75 * g.set.Strain }
