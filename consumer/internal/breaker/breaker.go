package breaker

import "time"

// Outcome is how a run of a record ended, as far as the breaker is concerned.
type Outcome uint8

const (
	// Void is no run: the record was dealt with otherwise, or its handler was cut off.
	Void Outcome = iota
	// Good is a record that was handled.
	Good
	// Decided is a failure that somebody named: terminal, or discarded. It says nothing of an
	// outage. A probe that ends so is good.
	Decided
	// Failed is a retryable failure.
	Failed
	// Defect is a panic, or a failure that is terminal because nothing has named it.
	Defect
)

// bad reports whether the outcome speaks for an outage.
func (o Outcome) bad() bool { return o == Failed || o == Defect }

// State is the state of a breaker.
type State uint8

const (
	// Closed lets all records run.
	Closed State = iota
	// Open lets single records run, as probes.
	Open
	// Ramp lets more and more records run at a time.
	Ramp
)

// String returns the state's name in health and metrics.
func (s State) String() string { return [...]string{"closed", "open", "ramp"}[s] }

// Reason is why a breaker opened.
type Reason uint8

const (
	// ManyFailures is a share of retryable failures.
	ManyFailures Reason = iota
	// ManyDefects is a share of panics, and of failures that are terminal by default.
	ManyDefects
	// NoSuccess is a row of failures without a success.
	NoSuccess
)

// String returns the reason's name in the log and in metrics.
func (r Reason) String() string { return [...]string{"failures", "defects", "no-success"}[r] }

// Settings are the thresholds. There are no defaults here.
type Settings struct {
	Off bool // of the breaker, not of the budget
	// Failures and Defects are the shares of the runs in a window, of which there are at least
	// Runs, that open the breaker. A share above 1 never does.
	Failures, Defects float64
	Runs              int64
	// Row is the number of bad runs of source records, without a good run in between, that opens
	// the breaker, once they span a window. 0: none.
	Row int64
	// Interval is the time before the first probe. Each failed probe doubles it, up to MaxInterval.
	Interval, MaxInterval time.Duration
	// Probes is how many more probes have to be good than fail.
	Probes int

	BudgetOff bool
	// BudgetShare of the runs in a window may be retries that fail again, and BudgetFloor always.
	BudgetShare float64
	BudgetFloor int64
}

const (
	// enoughFirst is the least number of runs of source records in a window for a share to count:
	// records of retry topics failed before, so they are no fair sample.
	enoughFirst = 10
	// rowGap is the longest time between two failures of a row.
	rowGap = time.Minute
	// manyHanging is the number of probes that do not return from which on each further one comes
	// later: the handler may not return at all, and each holds a worker.
	manyHanging = 10
	// idleRamp is the time after which a ramp that nothing waits for ends.
	idleRamp = time.Second
	// rampRow is the number of runs of the ramp that may fail without one that does not.
	rampRow = 20
)

// Breaker is the breaker and the retry budget of one topic. The times that its methods get are
// since any one moment. A time that is earlier than the last one counts as that.
type Breaker struct {
	set    Settings
	now    time.Duration
	window window

	state    State
	epoch    uint32 // counts the transitions
	openedAt time.Duration
	opening  Opening

	row              int64 // bad runs since the last good one
	rowBegan, rowEnd time.Duration

	interval  time.Duration // before the next probe, if this one fails
	probeAt   time.Duration // the next probe is due
	probedAt  time.Duration // the last one began
	running   int           // probes, or runs of the ramp
	latest    uint32        // the number of the last permit
	awaited   bool          // the last probe has not returned
	score     int           // good probes, less those that failed
	probes    int           // since it opened
	permitted int           // runs at a time in the ramp
	good      int           // runs of the ramp since permitted grew, without what failed
	refused   bool          // a run, since permitted grew or Tick found a free slot
	steppedAt time.Duration // permitted changed
	lookAt    time.Duration // Tick is due
	rampGood  int64         // of probes and ramp
	rampBad   int64
	rampRow   int // bad runs since the last good one

	retrying int64 // retries that run
	tight    bool  // the budget was used up a short time ago
}

// Opening is what opened a breaker.
type Opening struct {
	Reason Reason
	Runs   int64   // in the window, or in the row
	Share  float64 // of these, what counted
}

// Permit allows one run while the breaker is not closed. The zero value allows none.
type Permit struct {
	epoch, number uint32
	state         State
}

// OK reports whether the permit allows a run.
func (p Permit) OK() bool { return p.state != Closed }

// Probe reports whether the run is a probe: if it fails, its record stays where it is.
func (p Permit) Probe() bool { return p.state == Open }

// New makes a closed breaker.
func New(set Settings) *Breaker { return &Breaker{set: set} }

// State returns the state, and when the breaker opened, if it is not closed.
func (b *Breaker) State() (State, time.Duration) { return b.state, b.openedAt }

// Opening returns what opened the breaker last.
func (b *Breaker) Opening() Opening { return b.opening }

// Probes returns how many probes have ended since the breaker opened.
func (b *Breaker) Probes() int { return b.probes }

// turn notes the time.
func (b *Breaker) turn(now time.Duration) {
	b.now = max(b.now, now)
	b.window.roll(b.now)
}

// Count counts runs that ended alike. tier says that the records came from a retry topic, retry
// that they had failed before. It reports whether the breaker opened.
func (b *Breaker) Count(now time.Duration, o Outcome, n int64, tier, retry bool) (opened bool) {
	b.turn(now)
	var c counts
	switch o {
	case Good:
		c.good = n
	case Failed:
		c.failed = n
	case Defect:
		c.defects = n
	default:
		return false
	}
	if !tier {
		c.first = n
	}
	if o.bad() {
		if !tier {
			c.firstBad = n
		}
		if retry {
			c.again = n
		}
	}
	b.window.add(&c)
	if b.set.Off || b.state != Closed {
		return false
	}
	if !tier || !o.bad() {
		b.countRow(o, n)
	}
	return o.bad() && !tier && b.judge()
}

// countRow counts bad runs of source records in a row.
func (b *Breaker) countRow(o Outcome, n int64) {
	if !o.bad() {
		b.row = 0
		return
	}
	if b.row == 0 || b.now-b.rowEnd > rowGap {
		b.row, b.rowBegan = 0, b.now
	}
	b.row += n
	b.rowEnd = b.now
}

// judge opens the breaker if there is reason to.
func (b *Breaker) judge() bool {
	w := &b.window.sum
	runs := w.runs()
	// The source has to fail as well: what is left of a batch may be records that fail for good.
	source := w.first >= enoughFirst && float64(w.firstBad) >= b.set.Failures*float64(w.first)
	reached := func(n int64, share float64) bool {
		return runs >= b.set.Runs && source && float64(n) >= share*float64(runs)
	}
	switch {
	case reached(w.failed, b.set.Failures):
		b.opening = Opening{ManyFailures, runs, float64(w.failed) / float64(runs)}
	case reached(w.defects, b.set.Defects):
		b.opening = Opening{ManyDefects, runs, float64(w.defects) / float64(runs)}
	case b.set.Row > 0 && b.row >= b.set.Row && b.rowEnd-b.rowBegan >= Window:
		b.opening = Opening{NoSuccess, b.row, 1}
	default:
		return false
	}
	b.openedAt, b.probes, b.interval = b.now, 0, b.set.Interval
	b.open()
	return true
}

// to changes the state. Permits of earlier states count for nothing.
func (b *Breaker) to(s State) {
	b.state = s
	b.epoch++
	b.running, b.score, b.awaited, b.refused = 0, 0, false, false
}

func (b *Breaker) open() {
	b.to(Open)
	b.await()
}

// await sets the time of the next probe, and doubles the wait for the one after it.
func (b *Breaker) await() {
	b.probeAt = b.now + b.interval
	b.interval = min(2*b.interval, b.set.MaxInterval)
}

func (b *Breaker) ramp() {
	b.to(Ramp)
	b.step(2)
	b.lookAt = b.now + idleRamp
	b.rampGood, b.rampBad, b.rampRow = int64(b.set.Probes), 0, 0
}

// step sets how many runs the ramp permits at a time.
func (b *Breaker) step(permitted int) {
	b.permitted, b.good, b.refused, b.steppedAt = permitted, 0, false, b.now
}

func (b *Breaker) close() {
	b.to(Closed)
	b.window.clear()
	b.row = 0
}

// Offers reports whether [Breaker.Acquire] would give a permit.
func (b *Breaker) Offers(now time.Duration) bool {
	b.turn(now)
	switch {
	case b.state == Ramp:
		return b.running < b.permitted
	case b.state == Closed:
		return false
	case !b.awaited:
		return b.now >= b.probeAt
	default: // a probe that does not return must not hold up the others
		return b.now >= b.overtakenAt()
	}
}

// overtakenAt is when the next probe is offered if the last one does not return.
func (b *Breaker) overtakenAt() time.Duration {
	return b.probedAt + time.Duration(1+max(b.running-manyHanging, 0))*b.set.MaxInterval
}

// Acquire returns a permit for one run, if there is one. Every permit has to be released.
func (b *Breaker) Acquire(now time.Duration) Permit {
	if !b.Offers(now) {
		b.refused = true
		return Permit{}
	}
	b.running++
	b.latest++
	b.awaited, b.probedAt = true, b.now
	return Permit{b.epoch, b.latest, b.state}
}

// Release ends a run that Acquire permitted, and reports whether the state is another one now.
//
// tier says that the record came from a retry topic. If it fails though others are good, that says
// nothing: it failed before. repeated says that the record had failed as a probe before. If others
// were good since, it fails for a reason of its own, and there may be no others to probe: the ramp
// begins.
func (b *Breaker) Release(now time.Duration, p Permit, o Outcome, tier, repeated bool) (changed bool) {
	b.turn(now)
	if p.epoch != b.epoch || !p.OK() {
		return false
	}
	b.running--
	if b.state == Ramp {
		return b.ramped(o, tier)
	}
	if p.number != b.latest && (o == Void || o.bad()) {
		return false // another probe has been sent since, whose outcome tells more
	}
	b.awaited = false
	switch {
	case o == Void:
		b.probeAt = b.now
		return false
	case !o.bad():
		b.probes++
		b.score++
		b.probeAt = b.now
		if b.score >= b.set.Probes {
			b.ramp()
			return true
		}
	case repeated && b.score > 0:
		b.probes++
		b.ramp()
		return true
	case tier && b.score > 0:
		b.probes++
		b.probeAt = b.now + b.set.Interval
	default:
		b.probes++
		switch b.score--; {
		case b.score > 0:
			b.probeAt = b.now
		case b.score == 0: // others are good: the outage may be over
			b.probeAt = b.now + b.set.Interval
		default:
			b.score = 0
			b.await()
		}
	}
	return false
}

// ramped counts a run of the ramp.
func (b *Breaker) ramped(o Outcome, tier bool) (changed bool) {
	switch {
	case o == Void:
		return false
	case o.bad() && !tier:
		b.rampBad++
		b.rampRow++
		if b.rampRow >= rampRow || float64(b.rampBad) >= b.set.Failures*float64(b.rampBad+b.rampGood) {
			b.open()
			return true
		}
		return false
	}
	if !o.bad() {
		b.rampGood++
		b.rampRow = 0
	}
	if b.good++; b.good < b.permitted {
		return false
	}
	if !b.refused {
		b.close()
		return true
	}
	b.step(2 * b.permitted)
	return false
}

// Free returns how many more runs the ramp permits now.
func (b *Breaker) Free() int { return max(b.permitted-b.running, 0) }

// Tick ends a ramp that nothing waits for, and gives slots to others if runs do not end. It is to
// be called at the time that Next returns.
func (b *Breaker) Tick(now time.Duration) (changed bool) {
	b.turn(now)
	if b.state != Ramp || b.now < b.lookAt {
		return false
	}
	b.lookAt = b.now + idleRamp
	switch {
	case b.running == 0 || b.running < b.permitted && !b.refused:
		b.close()
		return true
	case b.running < b.permitted:
		b.refused = false // it is set again, if a lane still waits
	case b.now-b.steppedAt >= b.set.MaxInterval:
		b.step(b.running + 2)
	}
	return false
}

// Next returns when a probe is offered, or Tick is due. ok is false while the breaker is closed.
func (b *Breaker) Next() (at time.Duration, ok bool) {
	switch {
	case b.state == Closed:
		return 0, false
	case b.state == Ramp:
		return b.lookAt, true
	case !b.awaited:
		return b.probeAt, true
	default:
		return b.overtakenAt(), true
	}
}
