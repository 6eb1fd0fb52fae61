package chaos

import (
	"math/rand/v2"
	"os"
	"time"

	"github.com/sidingkafka/siding/integration/chaos/internal/outage"
	"github.com/sidingkafka/siding/integration/chaos/internal/trace"
)

// endMember ends a member, and replaces it.
func endMember(end func(*crewMember)) func(*execution, *rand.Rand) {
	return func(e *execution, rnd *rand.Rand) {
		m := e.crew.victim(rnd)
		end(m)
		e.rest(rnd, 0, 2*time.Second)
		e.crew.replace(m)
	}
}

// join adds a member for a while.
func join(e *execution, rnd *rand.Rand) {
	m := e.crew.join(rnd.IntN(len(e.plan.services)))
	if m == nil {
		return
	}
	e.rest(rnd, 5*time.Second, 15*time.Second)
	m.term()
}

// suspend stops a member for longer than its session.
func suspend(e *execution, rnd *rand.Rand) {
	m := e.crew.victim(rnd)
	session := m.Job.Service.Policy.Session
	m.suspend(func() { e.rest(rnd, session+time.Second, session+5*time.Second) })
	e.crew.release(m)
}

// changeTiers removes or adds a tier, by a rolling change of a service's members.
func changeTiers(e *execution, rnd *rand.Rand) {
	service, tiers := rnd.IntN(len(e.plan.services)), tierSets[rnd.IntN(len(tierSets))]
	e.crew.configure(service, tiers)
	for _, m := range e.crew.take(service) {
		m.term()
		e.crew.replace(m)
		e.rest(rnd, 500*time.Millisecond, 2*time.Second)
	}
}

// letFail makes runs of a service fail for a while, as if what they call were down: a share of
// them, in percent, from least to most.
func letFail(mode outage.Mode, least, most int) func(*execution, *rand.Rand) {
	return func(e *execution, rnd *rand.Rand) {
		e.outages.Lock() // one at a time
		defer e.outages.Unlock()
		group, percent := e.plan.services[rnd.IntN(len(e.plan.services))].Group, least+rnd.IntN(most-least+1)
		file, turns, shortest, longest := trace.OutageFile(e.cfg.Dir, group), 1, 8*time.Second, 20*time.Second
		switch mode {
		case outage.Flaps:
			turns, shortest, longest = 4, time.Second, 5*time.Second
		case outage.Tenants, outage.Chance: // each retry fails again, and again
			shortest, longest = 5*time.Second, 12*time.Second
		}
		e.logf("%s: outage, %s, %d %%", group, mode, percent)
		for turn := 0; turn < turns && e.failing.Err() == nil; turn++ {
			if turn > 0 {
				rest(e.failing, rnd, shortest, longest)
			}
			if err := outage.Begin(file, mode, percent); err != nil {
				e.try(err)
				return
			}
			rest(e.failing, rnd, shortest, longest)
			e.try(os.Remove(file))
		}
	}
}

// stickHandler writes a record whose handler ignores its context for StuckFor.
func stickHandler(e *execution, rnd *rand.Rand) {
	e.load.stick.Add(1)
	e.rest(rnd, trace.StuckFor, trace.StuckFor+time.Second)
}
