package guard

import (
	"slices"
	"time"
)

// guarded plays the guard, with its defaults.
type guarded struct {
	w     *world
	m     *member
	g     *Guard
	round time.Duration // when the last round of probes began
	turn  int           // the lane that probes
	taken int           // probes of its turn
	turns int           // runs of holds
	waits bool          // retries wait for the budget
}

var defaults = Settings{Hold: 0.95, Strain: 0.2}

func newGuarded(w *world, m *member) gate { return &guarded{w: w, m: m, g: New(defaults)} }

func (g *guarded) holds() bool {
	s, _ := g.g.State()
	return s == Held
}

func (g *guarded) take(l *lane) (p pick, ok bool) {
	for i := range l.feeds {
		at := (l.next + i) % len(l.feeds)
		if !l.may(at) && (at > 0 || len(l.tentative) == 0 || l.feeds[0].busy) {
			continue
		}
		if at == 0 {
			p, ok = g.source(l)
		} else {
			p, ok = g.retry(l, at)
		}
		if ok {
			l.next = at + 1
			return p, true
		}
	}
	return p, false
}

func (g *guarded) retry(l *lane, at int) (p pick, ok bool) {
	run, ok := g.g.Retry(g.w.now)
	if !ok {
		g.waits = !g.holds()
		return p, false
	}
	r, ok := l.pull(at)
	if !ok {
		g.g.End(g.w.now, run, Void)
	}
	return pick{record: r, feed: at, ticket: run}, ok
}

func (g *guarded) source(l *lane) (p pick, ok bool) {
	if g.g.Probes() && (g.m.lanes[g.turn] != l || g.taken == perTurn || !g.couldProbe(l)) {
		return p, false
	}
	fresh := slices.ContainsFunc(l.feeds[0].all, func(r *record) bool { return !r.failed })
	run, ok := g.g.Source(g.w.now, !fresh)
	if !ok {
		return p, false
	}
	if run.Probe() {
		g.taken++
	}
	if g.holds() {
		g.turns++
	}
	return pick{record: g.next1(l, run.Probe()), ticket: run}, true
}

// unprobed returns a record of the source that did not run in this round: the first one and the
// last one in turn, since those in front may all be of one tenant.
func (g *guarded) unprobed(l *lane) int {
	is := func(r *record) bool { return !r.failed || r.probedAt < g.round || !g.g.Probes() }
	all := l.feeds[0].all
	if g.turns%2 == 1 && l.world.cell.order != byPartition {
		for i, r := range slices.Backward(all) {
			if is(r) {
				return i
			}
		}
	}
	return slices.IndexFunc(all, is)
}

// couldProbe reports whether a lane has a record for this round.
func (g *guarded) couldProbe(l *lane) bool {
	return g.unprobed(l) >= 0 || len(l.tentative) > 0 && l.headAt < g.round
}

// next1 takes the next record of the source. The first probe of a lane in a round is its first
// record, and the others are such as did not fail before.
func (g *guarded) next1(l *lane, probe bool) *record {
	f := &l.feeds[0]
	switch {
	case g.w.cell.order != byPartition && g.holds():
		return f.remove(g.unprobed(l))
	case !probe && len(l.tentative) > 0:
		r := l.tentative[0]
		l.tentative = l.tentative[1:]
		return r
	case !probe:
	case len(l.tentative) > 0 && l.headAt < g.round:
		l.headAt = g.w.now
		l.head = l.tentative[0]
		l.tentative = l.tentative[1:]
		return l.head
	}
	return f.remove(0)
}

func (g *guarded) end(l *lane, p pick, o Outcome) (to fate) {
	run := p.ticket.(Run)
	changed := g.g.End(g.w.now, run, o)
	r := p.record
	head := l.head == r
	if head {
		l.head = nil
	}
	state, _ := g.g.State()
	switch {
	case o == Good:
		r.good = run.Probe()
	case run.Probe():
		to = stays
		r.probedAt, r.failed = g.w.now, true
		switch {
		case g.w.cell.order != byPartition:
			l.feeds[0].push(r)
		case head:
			l.tentative = slices.Concat([]*record{r}, l.tentative)
		default:
			if len(l.tentative) == 0 {
				l.headAt = g.w.now
			}
			l.tentative = append(l.tentative, r)
		}
	case state != Closed && (r.failedAt == 0 || g.w.now-r.failedAt < maxOutage):
		to = free
	}
	switch {
	case changed || run.Probe() && o == Good:
		g.w.wakeAll(g.m)
	case run.Probe():
		taken := g.taken
		if g.w.wake(l); g.taken == taken {
			g.pass()
		}
	}
	return to
}

// pass gives the turn to the next lane that takes a probe.
func (g *guarded) pass() {
	for range g.m.lanes {
		if !g.g.Probes() {
			return
		}
		g.turn, g.taken = (g.turn+1)%len(g.m.lanes), 0
		if g.w.wake(g.m.lanes[g.turn]); g.taken > 0 {
			return
		}
	}
}

func (g *guarded) next() time.Duration {
	at, ok := g.g.Next()
	if second := g.w.now.Truncate(time.Second) + time.Second; g.waits && (!ok || second < at) {
		at, ok = second, true
	}
	if !ok {
		return 0
	}
	return at
}

func (g *guarded) tick() {
	at, ok := g.g.Next()
	if ok && g.w.now >= at {
		g.round = g.w.now
	}
	patience := quiet
	for _, l := range g.m.lanes {
		if len(l.feeds[0].all)+len(l.tentative) > 0 {
			patience = time.Hour
		}
	}
	g.g.Tick(g.w.now, patience)
	g.waits = false
	if g.g.Probes() {
		g.pass()
	} else {
		g.w.wakeAll(g.m)
	}
}

// unguarded plays a topic that has neither a breaker nor a budget.
type unguarded struct{}

func (unguarded) take(l *lane) (pick, bool)     { return l.turn(true) }
func (unguarded) end(*lane, pick, Outcome) fate { return attempt }
func (unguarded) next() time.Duration           { return 0 }
func (unguarded) tick()                         {}
func (unguarded) holds() bool                   { return false }
