package breaker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Lane is a lane of the topic.
type Lane interface {
	// Number is the number of its partition.
	Number() int32
	// Wake makes the lane look again at whether it may run.
	Wake()
	// WakeRetries makes it look again at its due retries.
	WakeRetries()
	// CouldProbe reports whether it has a record that it could run as a probe: one of the source,
	// or any.
	CouldProbe() (source, any bool)
}

// Env is what a process gives to the breaker of a topic.
type Env struct {
	// Elapsed returns the time since any one moment.
	Elapsed func() time.Duration
	// Lanes returns the lanes of the topic, in any order.
	Lanes func() []Lane
	// Ended reports whether no lane is left.
	Ended func() bool
	// Note takes an event. It is called under the topic's lock, and must not call the topic.
	Note func(Event)
}

// Event is a transition, or that the budget is used up.
type Event struct {
	Retries  bool // the budget; the other fields are of a transition
	From, To State
	At       time.Time
	Status   Status
}

// Status is the state of a topic's breaker.
type Status struct {
	State     State
	Since     time.Time // it opened
	NextProbe time.Time // zero unless it is open
	Probes    int       // that have ended since
	Why       string    // what opened it
	Last      BadRun
}

// Totals are what a breaker did.
type Totals struct {
	State    State
	Openings map[Reason]int64
	Held     time.Duration // while it was not closed
}

// BadRun is a failure that speaks for an outage.
type BadRun struct{ Class, Message string }

// Topic is the breaker and the retry budget of a source topic: it holds the topic's lanes, and lets
// them probe. A nil Topic holds nothing. It is safe for concurrent use. No lock is taken under its
// own but those of Env.Elapsed and Env.Note, and a lane may call it under the lane's, except where
// a method says otherwise.
//
// See DESIGN.md, "The breaker".
type Topic struct {
	env *Env

	held        atomic.Bool // the breaker is not closed
	heldRetries atomic.Bool // the budget is used up

	mu    sync.Mutex
	b     *Breaker
	timer *time.Timer
	rests Rests
	// The lane that is to probe next, until turnEnds: each time it is another one.
	turn     Lane
	turnEnds time.Duration
	probed   int32         // the partition that probed last
	waiting  map[Lane]bool // for a slot of the ramp
	// retries of lanes wait for the budget, until wakeRetries
	retriesWait bool
	last        BadRun
	since       time.Time // it opened
	openings    map[Reason]int64
	heldFor     time.Duration // before since
}

// turnLasts is how long a lane that is to probe may take before another one may.
const turnLasts = time.Second

// NewTopic makes the breaker of a topic.
func NewTopic(env *Env, set Settings) *Topic {
	return &Topic{env: env, b: New(set), waiting: map[Lane]bool{}, probed: -1, openings: map[Reason]int64{}}
}

// Off reports whether the breaker never opens: what is counted then is for the budget only.
func (b *Topic) Off() bool { return b == nil || b.b.set.Off }

// Holds reports whether the topic's records wait, except for probes.
func (b *Topic) Holds() bool { return b != nil && b.held.Load() }

// HoldsRetries reports whether the topic's retries wait.
func (b *Topic) HoldsRetries() bool { return b != nil && b.heldRetries.Load() }

// Count counts runs that ended alike, at a reading of the coarse clock. is has the failure, for the
// log. The caller holds no lock.
func (b *Topic) Count(reading int64, o Outcome, n int64, tier, retry bool, is func() BadRun) {
	if b == nil {
		return
	}
	b.mu.Lock()
	now := time.Duration(reading)
	opened := b.b.Count(now, o, n, tier, retry)
	b.judgeRetries(now)
	if opened {
		b.last = is()
		b.opened()
	}
	b.mu.Unlock()
	if opened {
		b.wakeAll()
	}
}

// judgeRetries notes whether the budget is used up; the caller holds the lock. Once it has room,
// the timer tells the lanes, within a second.
func (b *Topic) judgeRetries(now time.Duration) {
	held := b.b.HoldsRetries(now)
	if b.heldRetries.Store(held); held && !b.retriesWait {
		b.retriesWait = true
		b.arm()
		b.env.Note(Event{Retries: true})
	}
}

// opened notes a transition from closed to open; the caller holds the lock.
func (b *Topic) opened() {
	b.since = time.Now()
	b.rests.Begin(b.since)
	b.openings[b.b.Opening().Reason]++
	b.changed(Closed)
}

// changed notes a transition; the caller holds the lock, and calls wakeAll after it.
func (b *Topic) changed(from State) {
	to, _ := b.b.State()
	b.held.Store(to != Closed)
	clear(b.waiting)
	b.turn = nil
	now := time.Now()
	if to == Closed {
		b.rests.End(now)
		b.heldFor += now.Sub(b.since)
	}
	b.env.Note(Event{From: from, To: to, At: now, Status: b.status(now)})
	b.arm()
}

// arm sets the timer for what comes next: a probe, the end of an idle ramp, or the next look at the
// budget. The caller holds the lock.
func (b *Topic) arm() {
	now := b.env.Elapsed()
	at, ok := b.b.Next()
	if ok && at <= now { // it is offered, and no lane takes it
		at = now + turnLasts
	}
	if b.retriesWait {
		if second := now.Truncate(time.Second) + time.Second; !ok || second < at {
			at, ok = second, true
		}
	}
	if !ok || b.env.Ended() {
		return
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(at-now, b.tick)
		return
	}
	b.timer.Reset(at - now)
}

// tick is the timer's callback.
func (b *Topic) tick() {
	if b.env.Ended() {
		return
	}
	b.mu.Lock()
	from, _ := b.b.State()
	now := b.env.Elapsed()
	changed := b.b.Tick(now)
	if changed {
		b.changed(from)
	}
	probe := from == Open && b.b.Offers(now)
	slots := from == Ramp && b.b.Free() > 0
	b.judgeRetries(now)
	// also while the budget is used up: others may wait for the keys of its retries
	retries := b.retriesWait
	b.retriesWait = b.heldRetries.Load()
	b.arm()
	b.mu.Unlock()
	switch {
	case changed, slots: // in a ramp, a lane may have become free to run without being told
		b.wakeAll()
	case probe:
		b.giveTurn()
	}
	if retries {
		b.wakeRetries()
	}
}

// Stop ends the timer, when Run ends.
func (b *Topic) Stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// wakeAll makes the topic's lanes look again at whether they may run.
func (b *Topic) wakeAll() {
	for _, l := range b.lanes() {
		l.Wake()
	}
}

// wakeRetries wakes the lanes whose retries wait, or waited, for the budget.
func (b *Topic) wakeRetries() {
	for _, l := range b.lanes() {
		l.WakeRetries()
	}
}

// lanes returns the topic's lanes, beginning with the one after that which probed last.
func (b *Topic) lanes() []Lane {
	all := b.env.Lanes()
	b.mu.Lock()
	probed := b.probed
	b.mu.Unlock()
	slices.SortFunc(all, func(l, m Lane) int {
		return cmp.Or(compareBool(l.Number() <= probed, m.Number() <= probed), cmp.Compare(l.Number(), m.Number()))
	})
	return all
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// giveTurn lets the next lane probe that could run a record: one of the source, if any lane has
// one, since what waits in retry topics failed before.
func (b *Topic) giveTurn() {
	var turn Lane
	for _, l := range b.lanes() {
		source, any := l.CouldProbe()
		if source || any && turn == nil {
			turn = l
		}
		if source {
			break
		}
	}
	if turn == nil {
		return // the first lane that gets a record probes
	}
	b.mu.Lock()
	b.turn, b.turnEnds = turn, b.env.Elapsed()+turnLasts
	b.mu.Unlock()
	turn.Wake()
}

// Offers reports whether a lane may ask for a permit. A lane may ask for a slot of the ramp at any
// time: if there is none, it waits for one.
func (b *Topic) Offers(l Lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offersTo(l)
}

// offersTo is offers; the caller holds the lock.
func (b *Topic) offersTo(l Lane) bool {
	switch state, _ := b.b.State(); state {
	case Closed:
		return false
	case Ramp:
		return true
	}
	now := b.env.Elapsed()
	return (b.turn == nil || b.turn == l || now >= b.turnEnds) && b.b.Offers(now)
}

// Acquire permits a lane to run one record, if it may. If there is no slot of the ramp, the lane is
// woken when there is one.
func (b *Topic) Acquire(l Lane) Permit {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.offersTo(l) {
		return Permit{}
	}
	p := b.b.Acquire(b.env.Elapsed())
	switch {
	case !p.OK():
		b.waiting[l] = true
	case p.Probe():
		b.turn, b.probed = nil, l.Number()
		b.arm()
	}
	return p
}

// Begin notes that a retry begins to run.
func (b *Topic) Begin() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.BeginRetry()
	b.judgeRetries(b.env.Elapsed())
}

// Run is a run that ended: of a retry, or with a permit.
type Run struct {
	Permit  Permit
	Outcome Outcome
	// Tier says that the record came from a retry topic, or is another one of which most fail.
	// Retry says that it had failed before, and Repeated that it had failed as a probe before.
	Tier, Retry, Repeated bool
}

// End notes how a run ended. Begin was called before, if it is a retry. The caller holds no lock.
func (b *Topic) End(r Run) {
	if b == nil || !r.Retry && !r.Permit.OK() {
		return
	}
	b.mu.Lock()
	if r.Retry {
		b.b.EndRetry()
		b.judgeRetries(b.env.Elapsed())
	}
	if !r.Permit.OK() {
		b.mu.Unlock()
		return
	}
	from, _ := b.b.State()
	changed := b.b.Release(b.env.Elapsed(), r.Permit, r.Outcome, r.Tier, r.Repeated)
	if changed {
		b.changed(from)
	}
	var next []Lane
	now, _ := b.b.State()
	switch {
	case changed:
	case now == Ramp:
		next = slices.Collect(maps.Keys(b.waiting))
		next = next[:min(len(next), b.b.Free())]
		for _, l := range next {
			delete(b.waiting, l)
		}
	default:
		b.arm()
	}
	probe := now == Open && b.b.Offers(b.env.Elapsed())
	b.mu.Unlock()
	switch {
	case changed:
		b.wakeAll()
	case probe:
		b.giveTurn()
	}
	for _, l := range next {
		l.Wake()
	}
}

// NoteProbe keeps the failure of a probe, for the log.
func (b *Topic) NoteProbe(is BadRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = is
}

// Rested returns for how much of the time since a moment the topic's records waited.
func (b *Topic) Rested(since, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rests.Since(since, now)
}

// Status returns the state of the breaker.
func (b *Topic) Status(now time.Time) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status(now)
}

// status is Status; the caller holds the lock.
func (b *Topic) status(now time.Time) Status {
	state, _ := b.b.State()
	is := Status{State: state, Since: b.since, Probes: b.b.Probes(), Why: b.why(), Last: b.last}
	if at, ok := b.b.Next(); ok && state == Open {
		is.NextProbe = now.Add(max(at-b.env.Elapsed(), 0))
	}
	return is
}

// Totals returns what the breaker did until now.
func (b *Topic) Totals(now time.Time) Totals {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, _ := b.b.State()
	held := b.heldFor
	if state != Closed {
		held += now.Sub(b.since)
	}
	return Totals{state, maps.Clone(b.openings), held}
}

// why says for an operator what opened the breaker, and the last failure; the caller holds the
// lock.
func (b *Topic) why() string {
	o := b.b.Opening()
	var what string
	switch o.Reason {
	case NoSuccess:
		what = fmt.Sprintf("%d runs in a row failed", o.Runs)
	case ManyDefects:
		what = fmt.Sprintf("%.0f %% of %d runs panicked or were terminal by default", 100*o.Share, o.Runs)
	default:
		what = fmt.Sprintf("%.0f %% of %d runs failed", 100*o.Share, o.Runs)
	}
	return what + ", the last with class " + b.last.Class
}
