package guard

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// perTurn is how many probes a lane has at a time: its first record, and some behind it.
const perTurn = 5

// turnLasts is how long a lane that is to probe may take before another one may.
const turnLasts = time.Second

// lastInterval is how often at most a topic keeps another last failure.
const lastInterval = time.Second

// Topic is the guard of a source topic in one process: it has the lock and the timer, and wakes the
// topic's lanes. A nil Topic holds nothing. It is safe for concurrent use. No lock is taken under
// its own but those of Env.Elapsed and Env.Note, and a lane may call it under the lane's, except
// where a method says otherwise.
//
// See DESIGN.md, "The guard".
type Topic struct {
	env *Env
	set Settings

	held        atomic.Bool
	heldRetries atomic.Bool
	noted       atomic.Pointer[Status] // at the last transition; nil while closed
	round       atomic.Int64           // counts the rounds of probes, and their ends

	mu    sync.Mutex
	g     *Guard
	timer *time.Timer
	rests Rests
	// The lane that probes, until turnEnds, and how many probes of its turn there were.
	turn     Lane
	taken    int
	turnEnds time.Duration
	ran      int32  // the partition that ran last, in a hold
	retried  int32  // the partition that retried last
	waiting  []Lane // for a run while a hold ends, in order
	// retries of lanes wait for the budget, until wakeRetries
	retriesWait  bool
	last         BadRun
	lastAt       time.Duration
	probes       int
	since, began time.Time
	times        [3]time.Duration // in each state, until since
}

// NewTopic makes the guard of a topic.
func NewTopic(env *Env, set Settings) *Topic {
	return &Topic{env: env, set: set, g: New(set), ran: -1, retried: -1, since: time.Now()}
}

// Off reports whether the state is always closed: what is counted is for the budget only.
func (t *Topic) Off() bool { return t == nil || t.set.Off }

// Holds reports whether the topic's records wait, except for probes.
func (t *Topic) Holds() bool { return t != nil && t.held.Load() }

// HoldsRetries reports whether the topic's retries wait.
func (t *Topic) HoldsRetries() bool { return t != nil && t.heldRetries.Load() }

// Noted returns the status as it was when the state last changed, nil if that is closed. It takes
// no lock, and the same transition has the same pointer.
func (t *Topic) Noted() *Status {
	if t == nil {
		return nil
	}
	return t.noted.Load()
}

// Free reports whether a retryable failure now is no attempt of a record whose retries began then.
func (t *Topic) Free(since, now time.Time) bool {
	return t.Noted() != nil && now.Sub(since) < t.set.MaxOutage
}

// Outlasts reports whether the topic has been held for MaxOutage.
func (t *Topic) Outlasts() bool { return t.Noted().outlasts(t.set.MaxOutage) }

// Ran counts runs of source records that no Source began, and that ended alike, at a reading of the
// coarse clock. is has the failure, for the log. The caller holds no lock.
func (t *Topic) Ran(reading int64, o Outcome, n int64, is func() BadRun) {
	if t == nil {
		return
	}
	t.mu.Lock()
	now := time.Duration(reading)
	from := t.g.state
	changed := t.g.Ran(now, o, n)
	t.keepLast(o, changed, now, is)
	if changed {
		t.changed(from)
	}
	t.mu.Unlock()
	t.wake(changed, from, false, false)
}

// Source begins a run of a lane's source record, if one may run now. If none may because as many
// run as may, the lane is woken when another one may. Each run has to be ended. fails says that the
// record has failed as a probe before.
func (t *Topic) Source(l Lane, fails bool) (r Run, ok bool) {
	if t == nil {
		return r, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.env.Elapsed()
	if t.g.state == Held && !t.offersTo(l, now) {
		return r, false
	}
	r, ok = t.g.Source(now, fails)
	switch {
	case !ok:
		if !slices.Contains(t.waiting, l) {
			t.waiting = append(t.waiting, l)
		}
	case r.Probe():
		if t.turn != l {
			t.turn, t.taken = l, 0
		}
		t.taken++
		t.turnEnds, t.ran = now+turnLasts, l.Number()
		t.arm()
	case r.Held():
		t.ran = l.Number()
	}
	return r, ok
}

// Retry begins a run of a lane's record that failed before, if one may run now. Each has to be
// ended.
func (t *Topic) Retry(l Lane) (r Run, ok bool) {
	if t == nil {
		return r, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.env.Elapsed()
	if r, ok = t.g.Retry(now); ok {
		t.retried = l.Number()
	}
	t.judgeRetries(now)
	return r, ok
}

// End ends a run that Source or Retry began, after its record is back where it stays. is has the
// failure, for the log. The caller holds no lock.
func (t *Topic) End(r Run, o Outcome, is func() BadRun) {
	if t == nil || !r.Began() {
		return
	}
	t.mu.Lock()
	now := t.env.Elapsed()
	from, rounds := t.g.state, t.g.hold.width == 0
	changed := t.g.End(now, r, o)
	if r.Probe() && o != Void {
		t.probes++
	}
	t.keepLast(o, changed, now, is)
	if r.retry {
		t.judgeRetries(now)
	}
	var next []Lane
	all, probe := false, false
	switch {
	case changed:
		t.changed(from)
	case t.g.state != Held:
	case t.g.hold.width == 0:
		probe = t.g.Probes()
		t.arm()
	case rounds: // the first good probe
		all = true
		t.endTurn()
		t.arm()
	default:
		n := min(len(t.waiting), t.g.Free())
		next, t.waiting = t.waiting[:n:n], t.waiting[n:]
	}
	t.mu.Unlock()
	t.wake(changed, from, all, probe)
	for _, l := range next {
		l.Wake()
	}
}

// keepLast keeps a failure, for the log; the caller holds the lock.
func (t *Topic) keepLast(o Outcome, changed bool, now time.Duration, is func() BadRun) {
	if (o.bad() || o.failed()) && is != nil && (changed || t.g.state != Closed && now-t.lastAt >= lastInterval) {
		t.last, t.lastAt = is(), now
	}
}

// judgeRetries registers whether retries wait; the caller holds the lock. Once the budget has room,
// the timer wakes the lanes, within a second.
func (t *Topic) judgeRetries(now time.Duration) {
	held := t.g.HoldsRetries(now)
	if t.heldRetries.Store(held); held && t.g.state != Held && !t.retriesWait {
		t.retriesWait = true
		t.arm()
		t.env.Note(Event{Retries: true})
	}
}

// changed registers a transition; the caller holds the lock, and calls wake after it.
func (t *Topic) changed(from State) {
	to, now := t.g.state, time.Now()
	t.times[from] += now.Sub(t.since)
	t.since = now
	if from == Closed {
		t.began, t.probes = now, 0
	}
	if to == Held {
		t.rests.Begin(now)
	} else {
		t.rests.End(now)
	}
	t.endTurn()
	t.held.Store(to == Held)
	is := t.status(now)
	if t.noted.Store(&is); to == Closed {
		t.noted.Store(nil)
	}
	t.judgeRetries(t.env.Elapsed())
	t.env.Note(Event{From: from, To: to, At: now, Status: is})
	t.arm()
}

// endTurn begins a round of probes, or ends them; the caller holds the lock.
func (t *Topic) endTurn() {
	t.round.Add(1)
	t.turn, t.taken, t.waiting = nil, 0, nil
}

// arm sets the timer for what comes next: a round of probes, the end of a turn, or the next look at
// the budget. The caller holds the lock.
func (t *Topic) arm() {
	now := t.env.Elapsed()
	at, ok := t.g.Next()
	if t.g.Probes() { // a lane may have become free to run without being woken
		at = min(at, now+turnLasts)
	}
	if t.retriesWait {
		if second := now.Truncate(time.Second) + time.Second; !ok || second < at {
			at, ok = second, true
		}
	}
	if !ok || t.env.Ended() {
		return
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(at-now, t.tick)
		return
	}
	t.timer.Reset(at - now)
}

// tick is the timer's callback.
func (t *Topic) tick() {
	if t.env.Ended() {
		return
	}
	patience := t.env.patience(t.Holds(), t.set.MaxOutage)
	t.mu.Lock()
	now, from := t.env.Elapsed(), t.g.state
	at, _ := t.g.Next()
	changed := t.g.Tick(now, patience)
	switch {
	case changed:
		t.changed(from)
	case from == Held && now >= at && t.g.hold.width == 0:
		t.endTurn()
	}
	probe, slots := t.g.Probes(), t.g.state == Held && t.g.Free() > 0
	t.judgeRetries(now)
	// also while the budget is used up: others may wait for the keys of its retries
	retries := t.retriesWait
	t.retriesWait = t.heldRetries.Load() && t.g.state != Held
	t.arm()
	t.mu.Unlock()
	t.wake(changed, from, slots, probe)
	if retries {
		t.wakeRetries()
	}
}

// Stop ends the timer, when Run ends.
func (t *Topic) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Offers reports whether a lane may ask for a run of its source. While a hold ends, it may at any
// time: if as many run as may, it waits for one of these.
func (t *Topic) Offers(l Lane) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.g.state == Held && t.offersTo(l, t.env.Elapsed())
}

// offersTo is Offers in a hold; the caller holds the lock.
func (t *Topic) offersTo(l Lane, now time.Duration) bool {
	if t.g.hold.width > 0 {
		return true
	}
	return t.g.Probes() && (t.turn == nil || t.turn == l && t.taken < perTurn || now >= t.turnEnds)
}

// wake wakes the lanes after a transition, else all of them, or the one that probes next. A
// transition between closed and strained changes nothing of what they may run.
func (t *Topic) wake(changed bool, from State, all, probe bool) {
	switch {
	case changed && from == Held:
		t.wakeAll()
		t.wakeRetries()
	case changed && t.Holds(), all:
		t.wakeAll()
	case probe:
		t.giveTurn()
	}
}

// wakeAll makes the topic's lanes look again at whether they may run.
func (t *Topic) wakeAll() {
	for _, l := range t.lanesAfter(&t.ran) {
		l.Wake()
	}
}

// wakeRetries wakes the lanes whose retries wait, or waited, for the budget. The first one may use
// it up, so they take turns.
func (t *Topic) wakeRetries() {
	for _, l := range t.lanesAfter(&t.retried) {
		l.WakeRetries()
	}
}

// lanesAfter returns the topic's lanes in the order of their turns, after one that ran last.
func (t *Topic) lanesAfter(ran *int32) []Lane {
	all := t.env.Lanes()
	t.mu.Lock()
	defer t.mu.Unlock()
	return inTurn(all, *ran)
}

// giveTurn lets the lane probe whose turn it is, else the next one that could.
func (t *Topic) giveTurn() {
	t.mu.Lock()
	turn, goesOn := t.turn, t.turn != nil && t.taken < perTurn
	t.mu.Unlock()
	if goesOn && turn.CouldProbe() {
		turn.Wake()
		return
	}
	all := t.lanesAfter(&t.ran)
	i := slices.IndexFunc(all, Lane.CouldProbe)
	t.mu.Lock()
	t.turn, t.taken = nil, 0 // the first lane that gets a record probes
	if i >= 0 {
		t.turn, t.turnEnds = all[i], t.env.Elapsed()+turnLasts
	}
	t.mu.Unlock()
	if i >= 0 {
		all[i].Wake()
	}
}

// Rested returns for how much of the time since a moment the topic was held.
func (t *Topic) Rested(since, now time.Time) time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rests.Since(since, now)
}

// Status returns the state of the guard.
func (t *Topic) Status(now time.Time) Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status(now)
}

// status is Status; the caller holds the lock.
func (t *Topic) status(now time.Time) Status {
	is := Status{State: t.g.state, Since: t.since, Began: t.began, Probes: t.probes, Last: t.last}
	is.Runs, is.Bad = t.g.Share()
	if at, _ := t.g.Next(); t.g.state == Held && t.g.hold.width == 0 {
		is.NextProbe = now.Add(max(at-t.env.Elapsed(), 0))
	}
	return is
}

// Times returns for how long the guard has had each state.
func (t *Topic) Times(now time.Time) (times [3]time.Duration, is State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	times = t.times
	times[t.g.state] += now.Sub(t.since)
	return times, t.g.state
}
