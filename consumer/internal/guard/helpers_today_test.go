package guard

import (
	"slices"
	"time"

	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// today plays the breaker and the retry budget that the consumer has, with their defaults.
type today struct {
	w        *world
	m        *member
	b        *breaker.Breaker
	was      breaker.State
	turn     *lane // is to probe next, until turnEnds
	turnEnds time.Duration
	probed   int // the lane that probed last
	waits    bool
}

// todaysRun is a run under today's machine.
type todaysRun struct {
	permit          breaker.Permit
	retry, repeated bool
}

func newToday(w *world, m *member) gate {
	return &today{w: w, m: m, probed: -1, b: breaker.New(breaker.Settings{
		Failures: 0.5, Defects: 0.9, Runs: 100, Row: 20, Interval: time.Second, MaxInterval: 15 * time.Second, Probes: 10,
		BudgetShare: 0.2, BudgetFloor: 100,
	})}
}

func (g *today) state() breaker.State {
	s, _ := g.b.State()
	return s
}

func (g *today) holds() bool { return g.state() != breaker.Closed }

func (g *today) take(l *lane) (p pick, ok bool) {
	run := &todaysRun{}
	switch g.state() {
	case breaker.Closed:
		held := g.b.HoldsRetries(g.w.now)
		g.waits = g.waits || held
		p, ok = l.turn(!held)
	case breaker.Ramp:
		if run.permit = g.b.Acquire(g.w.now); !run.permit.OK() {
			return p, false
		}
		g.putFailedBack(l)
		p, ok = l.turn(true)
	default:
		if !l.may(0) && !l.may(1) && !l.may(2) && !l.may(3) || !(g.turn == nil || g.turn == l || g.w.now >= g.turnEnds) || !g.b.Offers(g.w.now) {
			return p, false
		}
		run.permit = g.b.Acquire(g.w.now)
		g.probed, g.turn = l.number, nil
		p, ok = g.probe(l)
	}
	if !ok {
		g.b.Release(g.w.now, run.permit, breaker.Void, false, false)
		return p, false
	}
	run.retry, run.repeated = p.feed > 0, p.record.probed
	if run.retry {
		g.b.BeginRetry()
	}
	p.ticket = run
	return p, true
}

// probe picks the first record of the source that has not failed as a probe, or any.
func (g *today) probe(l *lane) (p pick, ok bool) {
	if i := unprobed(l); i >= 0 {
		if l.world.cell.order == byPartition { // those in front are set aside
			l.tentative = append(l.tentative, l.feeds[0].all[:i]...)
			l.feeds[0].all = l.feeds[0].all[i:]
			i = 0
		}
		return pick{record: l.feeds[0].remove(i)}, true
	}
	g.putFailedBack(l)
	return l.turn(true)
}

func unprobed(l *lane) int {
	if !l.may(0) {
		return -1
	}
	return slices.IndexFunc(l.feeds[0].all, func(r *record) bool { return !r.probed })
}

func (g *today) putFailedBack(l *lane) {
	if l.world.cell.order == byPartition && !l.feeds[0].busy && len(l.tentative) > 0 {
		l.giveUp()
	}
}

func (g *today) end(l *lane, p pick, o Outcome) fate {
	run, was := p.ticket.(*todaysRun), breaker.Good
	switch o {
	case Failed:
		was = breaker.Failed
	case Defect:
		was = breaker.Defect
	}
	now, tier := g.w.now, p.feed > 0
	if run.retry {
		g.b.EndRetry()
	}
	g.b.Count(now, was, 1, tier, run.retry)
	g.b.Release(now, run.permit, was, tier, run.repeated)
	probe := run.permit.Probe()
	if g.state() != breaker.Open {
		g.putFailedBack(l)
	}
	to := attempt
	if probe && o != Good {
		to = stays
		if p.feed == 0 && g.w.cell.order == byPartition {
			l.tentative = append(l.tentative, p.record)
			if g.state() != breaker.Open {
				g.putFailedBack(l)
			}
		} else {
			l.feeds[p.feed].push(p.record)
			p.record.probed = true
			g.swap(l, p)
		}
	}
	g.changed()
	return to
}

// swap puts a record that failed as a probe behind the others of its key, if there is no sample.
func (g *today) swap(l *lane, p pick) {
	all, r := &l.feeds[p.feed], p.record
	if len(l.behind[r.key]) == 0 || slices.ContainsFunc(all.all, func(r *record) bool { return !r.probed }) {
		return
	}
	all.remove(len(all.all) - 1)
	l.behind[r.key] = append(l.behind[r.key], r)
	l.release(r)
}

// changed wakes the lanes when the state changed, and gives a turn if a probe is due.
func (g *today) changed() {
	if s := g.state(); s != g.was {
		g.was = s
		g.turn = nil
		g.w.wakeAll(g.m)
		return
	}
	switch {
	case g.state() == breaker.Open && g.b.Offers(g.w.now):
		g.giveTurn()
	case g.state() == breaker.Ramp && g.b.Free() > 0:
		g.w.wakeAll(g.m)
	}
}

func (g *today) giveTurn() {
	n := len(g.m.lanes)
	first := slices.IndexFunc(g.m.lanes, func(l *lane) bool { return l.number > g.probed })
	var turn *lane
	for i := range n {
		l := g.m.lanes[(max(first, 0)+i)%n]
		source := unprobed(l) >= 0
		if source || turn == nil && (l.may(0) || l.may(1) || l.may(2) || l.may(3) || len(l.tentative) > 0 && !l.feeds[0].busy) {
			turn = l
		}
		if source {
			break
		}
	}
	if turn != nil {
		if unprobed(turn) < 0 {
			g.putFailedBack(turn)
		}
		g.turn, g.turnEnds = turn, g.w.now+time.Second
		g.w.wake(turn)
	}
}

func (g *today) next() time.Duration {
	at, ok := g.b.Next()
	if ok && at <= g.w.now {
		at = g.w.now + time.Second
	}
	if second := g.w.now.Truncate(time.Second) + time.Second; g.waits && (!ok || second < at) {
		at, ok = second, true
	}
	if !ok {
		return 0
	}
	return at
}

func (g *today) tick() {
	g.b.Tick(g.w.now)
	if g.waits && !g.b.HoldsRetries(g.w.now) {
		g.waits = false
		g.w.wakeAll(g.m)
	}
	g.changed()
}

// unguarded plays a topic that has neither a breaker nor a budget.
type unguarded struct{}

func (unguarded) take(l *lane) (pick, bool)     { return l.turn(true) }
func (unguarded) end(*lane, pick, Outcome) fate { return attempt }
func (unguarded) next() time.Duration           { return 0 }
func (unguarded) tick()                         {}
func (unguarded) holds() bool                   { return false }
