package redrive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

const (
	tickEvery      = 20 * time.Millisecond
	pollEvery      = time.Second
	heartbeatEvery = 5 * time.Second
	// pollTimeout bounds one look at the outcomes.
	pollTimeout = 15 * time.Second
	// pollGrace is how long a run that is aborted waits for the one that is under way; what it does not find can be found later.
	pollGrace = 2 * time.Second
	// closeTimeout bounds what is done after the caller's context ended.
	closeTimeout = 10 * time.Second
)

// engine sends the letters of a run and follows them until it is over. All of it is one loop; what waits for a broker runs beside it
// and answers through channels.
// See DESIGN.md, "States of a run".
type engine struct {
	*ownedRun
	on      func(Event)
	flights *inflight.Letters
	alarm   *alarm
	watch   *watch
	polls   *outcomes
	bucket  *bucket

	state     State
	waiting   string
	ramp      time.Time // when the ramp began
	canaryAt  time.Time // when the last canary was sent
	lastSent  time.Time
	heartbeat time.Time
	reported  time.Time

	letters <-chan reading
	buffer  []*outgoing   // read, and not sent
	reads   *memoryBudget // for the letters in memory
	readAll bool          // all were read
	taken   int64         // handed to a transaction, by this process and before
	open    *transaction
	next    int             // the producer whose turn it is
	busy    [2]bool         // its transaction is being ended
	before  chan struct{}   // closed when the last one that was handed over has ended
	sent    <-chan struct{} // closed when it has nothing more on its way
	broken  *atomic.Bool    // a transaction was not committed, so the later ones must not be
	ends    chan ended
	notes   []*kgo.Record // for the ledger, with the next transaction

	polled            chan pollResult
	polling           bool
	cancelPoll        context.CancelFunc // ends the one that is under way
	polledAt          time.Time          // when the last one ended
	asOf              time.Time          // when the last one began that found all
	pollBegan         time.Time          // when the one that is under way began
	pollErr           error              // why the last one did not
	idle              []string
	lag               int64
	catchingUp        bool  // of a run that was taken over: what happened meanwhile was not read yet, and nothing is sent before
	topicGone         bool  // the dead-letter topic is another one by now
	missingPermission error // a right that was taken away

	problems chan error
	logged   map[string]time.Time
	skips    int // letters that are not sent, as this process found
}

// pollResult is what a look at the outcomes found.
type pollResult struct {
	verdicts []inflight.Verdict
	judged   inflight.FirstOutcomes
	idle     []string // groups without members
	lag      int64    // of the groups, on a target that was named
	err      error
}

// run goes on with a run until it is over, aborts itself, is interrupted by ctx, or is lost.
func (h *ownedRun) run(ctx context.Context, on func(Event)) error {
	if h.rec.State.Finished() { // its final record stands: only the answer to it was lost
		if h.abortErr != nil {
			return h.abortErr
		}
		return nil
	}
	now := time.Now()
	e := &engine{
		ownedRun: h, on: on, flights: inflight.New(inflight.Counts(h.rec.Counts), h.inFlight), alarm: newAlarm(h.rec),
		bucket: newBucket(h.rec.Pace.Rate, h.rec.Pace.Burst, now),
		state:  Canary, lastSent: now, canaryAt: now, heartbeat: now, taken: h.rec.Counts.Sent,
		reads: newMemoryBudget(h.r.cfg.MaxBufferedBytes), before: make(chan struct{}), broken: new(atomic.Bool), ends: make(chan ended, 2),
		polled: make(chan pollResult, 1), polledAt: now, problems: make(chan error, 16), logged: map[string]time.Time{},
	}
	close(e.before)
	e.sent = e.before
	if h.pastCanary() { // what it sent since may wait in a retry topic for long
		e.state, e.ramp = Sending, now
		e.alarm.stage(false, now)
	}
	if e.catchingUp = h.rec.Counts.Sent > 0; e.catchingUp {
		e.polledAt = time.Time{}
	}
	if h.abortErr != nil {
		e.alarm.withdraw(h.abortErr.Cause, h.abortErr.Seen...)
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var err error
	if e.watch, err = h.startWatch(ctx, e.flights, e.alarm, e.problem); err != nil {
		return e.unwatched(ctx, err)
	}
	defer e.watch.Close()
	e.polls = h.outcomes(e.watch)
	letters := h.readLetters(work, e.reads)
	e.letters = letters
	defer func() { // nothing of the run goes on when it has ended
		stop()
		for range letters {
			// They are not sent any more.
		}
		if e.polling {
			<-e.polled
		}
	}()
	return e.loop(ctx, work)
}

// pastCanary reports whether the canary of a run that is taken over had its outcome: it says so itself, or has sent more since.
func (h *ownedRun) pastCanary() bool {
	c := h.rec.Counts
	return h.rec.State == Sending || h.rec.State == Watching || c.Sent-c.Unknown-c.Unfollowed > int64(h.rec.Pace.Canary)
}

func (e *engine) loop(ctx, work context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	token := time.NewTimer(0)
	defer token.Stop()
	for {
		now := time.Now()
		if done, err := e.advance(ctx, work, now); done || err != nil {
			return err
		}
		wait, err := e.pump()
		if err != nil {
			return err
		}
		if wait > 0 {
			token.Reset(wait)
		}
		letters := e.letters
		if len(e.buffer) >= 2*readBatch {
			letters = nil
		}
		var sent <-chan struct{}
		if len(e.buffer) > 0 && e.open == nil && !e.clear() {
			sent = e.sent
		}
		select {
		case <-ctx.Done():
			return e.interrupt(context.Cause(ctx))
		case <-e.alarm.fired:
			return e.abort()
		case r := <-letters:
			e.read(r)
		case done := <-e.ends:
			if err := e.transactionEnded(done); err != nil {
				return err
			}
		case l := <-e.polled:
			e.applyPoll(l)
		case err := <-e.problems:
			e.logThrottled(err.Error())
		case <-sent:
		case <-token.C:
		case <-tick.C:
		}
	}
}

// problem is for those who run beside the loop.
func (e *engine) problem(err error) {
	select {
	case e.problems <- err:
	default: // one is being told
	}
}

// advance moves the run from state to state, and sees to what is due. It reports whether the run is over.
func (e *engine) advance(ctx, work context.Context, now time.Time) (over bool, err error) {
	if e.topicGone {
		return true, e.abandon()
	}
	if e.missingPermission != nil {
		return true, e.interrupt(e.missingPermission)
	}
	e.waiting = ""
	was := e.state
	c := e.flights.Counts()
	switch e.state {
	case Canary:
		switch {
		case c.Sent-c.Unknown-c.Unfollowed >= int64(e.rec.Pace.Canary) && c.Pending == 0 || e.sentAll() && c.Pending == 0:
			e.state, e.ramp = Sending, now
			e.alarm.stage(false, now)
		case e.canaryFull() && now.Sub(e.canaryAt) >= canaryPatience:
			e.waiting = fmt.Sprintf("the canary has no outcome after %v: is the consumer running?", canaryPatience)
		}
	case Sending:
		e.bucket.pace(e.rec.Pace.rateAt(now.Sub(e.ramp)), now)
		switch limit := e.rec.Pace.MaxLag; {
		case e.sentAll():
			e.state = Watching
			e.alarm.stage(false, time.Time{})
		case limit > 0 && max(e.flights.Unfinished(), e.lag) >= limit:
			e.waiting = fmt.Sprintf("the group is behind: %d records are due and unfinished, and the limit is %d", max(e.flights.Unfinished(), e.lag), limit)
		}
	case Watching:
		switch end := e.lastSent.Add(e.rec.Pace.Window); {
		case now.Before(end):
		case !e.asOf.Before(end) && !e.polling: // what a look has found is the run's to write down
			return true, e.finish(ctx)
		case !e.polling && e.polledAt.Before(end):
			e.poll(work)
		case e.pollErr != nil:
			e.waiting = "the window is over, and what failed within it is not known: " + e.pollErr.Error()
		}
	}
	if e.waiting == "" && len(e.idle) > 0 && e.state != Watching {
		e.waiting = fmt.Sprintf("no consumer would run the records: %s without members", strings.Join(e.idle, ", "))
	}
	if e.state == Sending {
		if e.waiting != "" || e.catchingUp { // what is held back drains nothing, for a reason of its own
			e.alarm.stage(false, now)
		}
		e.alarm.check(now)
	}
	if !e.polling && now.Sub(e.polledAt) >= pollEvery {
		e.poll(work)
	}
	if now.Sub(e.heartbeat) >= heartbeatEvery {
		e.heartbeat = now
		e.notes = append(e.notes, e.record(now).note(e.topics.ledger))
	}
	if e.state != was || now.Sub(e.reported) >= 200*time.Millisecond {
		e.reportSkips("")
	}
	if e.open == nil && len(e.notes) > 0 && e.mayBegin() {
		if e.open, err = e.begin(e.next); err != nil {
			return false, err
		}
		e.handOver(work)
	}
	if e.open != nil && now.Sub(e.open.began) >= txnLength {
		e.handOver(work)
	}
	return false, nil
}

// sentAll reports whether nothing is left to send.
func (e *engine) sentAll() bool {
	return e.readAll && len(e.buffer) == 0 && e.open == nil && !e.busy[0] && !e.busy[1]
}

// canaryFull reports whether as many were taken as a canary has.
func (e *engine) canaryFull() bool {
	c := e.flights.Counts()
	return e.taken-c.Unknown-c.Unfollowed >= int64(e.rec.Pace.Canary)
}

// clear reports whether the connection has room for another transaction: on a slow one two at once would both take twice as long.
func (e *engine) clear() bool {
	if !e.load.narrow {
		return true
	}
	select {
	case <-e.sent:
		return true
	default:
		return false
	}
}

// mayBegin reports whether a transaction may be begun now.
func (e *engine) mayBegin() bool { return !e.busy[e.next] && e.clear() }

// pump sends what may be sent now. It returns how long it is until the next token, where that is what is missing.
func (e *engine) pump() (wait time.Duration, err error) {
	for len(e.buffer) > 0 && e.waiting == "" && !e.catchingUp && (e.state == Sending || e.state == Canary && !e.canaryFull()) {
		if e.open == nil {
			if !e.mayBegin() {
				return 0, nil
			}
			if e.open, err = e.begin(e.next); err != nil {
				return 0, err
			}
		}
		if !e.load.fits(e.open, e.buffer[0].size) {
			e.open.full = true
			e.handOver(context.Background())
			continue
		}
		if e.bucket.rate >= 0 { // the clock costs as much as all the rest
			if wait := e.bucket.take(time.Now()); wait > 0 {
				return wait, nil
			}
		}
		e.open.add(e.buffer[0])
		e.buffer[0] = nil
		e.buffer = e.buffer[1:]
		e.taken++
		if e.state == Canary && e.canaryFull() {
			e.handOver(context.Background())
		}
	}
	return 0, nil
}

// handOver ends the open transaction, beside the loop.
func (e *engine) handOver(ctx context.Context) {
	t := e.open
	n, bytes := e.load.some(e.notes)
	t.bytes += bytes
	t.notes, e.notes = e.notes[:n:n], e.notes[n:]
	e.open, e.busy[t.which], e.next = nil, true, 1-t.which
	before, after := e.before, make(chan struct{})
	e.before, e.sent = after, t.sent
	go func() {
		defer close(after)
		done := e.end(ctx, t, before, e.alarm.fired, e.broken)
		if done.committed {
			e.watch.Wrote(t.written())
		}
		if !done.committed && len(done.refused) == 0 {
			e.broken.Store(true)
		}
		e.ends <- done
	}()
}

// transactionEnded takes down how a transaction ended.
func (e *engine) transactionEnded(done ended) error {
	e.busy[done.which] = false
	if done.err != nil {
		return e.load.overdue(attempt{done.began, len(done.copies) + len(done.notes), done.bytes}, done.err)
	}
	if len(done.refused) > 0 {
		e.refused(done)
		return nil
	}
	if !done.committed { // the alarm was faster; what the ledger is to be told, it is told at the end
		e.notes = append(e.notes, unsent(done.notes)...)
		return nil
	}
	now := time.Now()
	if len(done.copies) > 0 {
		e.load.accepted(done.transaction)
		e.reads.free(done.held)
		left := int64(0)
		e.flights.Sent(done.sentLetters(func(group string) bool {
			follows := e.follows(group)
			if !follows {
				left++
			}
			return follows
		}))
		e.flights.Leave(left)
		e.alarm.onSent(now, len(done.copies))
		e.lastSent, e.canaryAt = now, now
	}
	return nil
}

// refused takes down that a broker will not take what was in a transaction, of which nothing stands then. It refuses whole batches, and
// does not say for which of their letters: so they go again with fewer at a time, until the one is alone that it will not take. That
// stays.
func (e *engine) refused(done ended) {
	var alone *outgoing
	if len(done.refused) == 1 {
		alone = done.refused[0]
	}
	again := make([]*outgoing, 0, len(done.copies)+len(e.buffer))
	for _, o := range done.copies {
		e.taken--
		if o != alone {
			again = append(again, o.fresh())
		}
	}
	if alone != nil {
		err := done.transaction.err(alone)
		e.skip(skip{alone.Place, refusal(err), err})
		e.reads.free(int64(alone.size))
	} else {
		e.load.refused(len(done.refused))
	}
	e.buffer = append(again, e.buffer...)
	e.notes = append(done.notes, e.notes...)
}

// read takes what the reader has to tell.
func (e *engine) read(r reading) {
	e.buffer = append(e.buffer, r.ready...)
	for _, s := range r.skipped {
		e.skip(s)
	}
	if r.err != nil {
		e.heed(r.err)
		e.logThrottled(r.err.Error())
	}
	if !r.end {
		return
	}
	e.readAll, e.letters = true, nil
	for at := range r.missing.All() { // retention took them since the plan was made
		e.flights.Skip(SkippedExpired)
		e.notes = append(e.notes, e.entry(at, dlq.Entry{State: dlq.Expired}))
	}
}

// maxReportedSkips is of how many letters that are not sent a run tells one by one: of a thousand with the same reason nobody reads each.
const maxReportedSkips = 10

// skip counts a letter that is not sent, and says so of the first ones.
func (e *engine) skip(s skip) {
	e.flights.Skip(s.why)
	if e.skips++; e.skips > maxReportedSkips {
		e.logThrottled("more letters stay, which are only counted")
		return
	}
	text := fmt.Sprintf("letter %v stays: %s", s.at.In(e.topics.dlq), s.why)
	if s.err != nil {
		text += ": " + s.err.Error()
	}
	e.reportSkips(text) // once for each letter
}

// poll begins a look at the outcomes.
func (e *engine) poll(work context.Context) {
	e.polling, e.pollBegan = true, time.Now()
	ctx, cancel := context.WithTimeout(work, pollTimeout)
	e.cancelPoll = cancel
	go func() {
		defer cancel()
		e.polled <- e.polls.poll(ctx)
	}()
}

// applyPoll takes what a look found.
func (e *engine) applyPoll(l pollResult) {
	e.polling, e.polledAt = false, time.Now()
	for _, v := range l.verdicts { // whatever failed after them: the flights have let go of these
		e.notes = append(e.notes, e.applyVerdict(v)...)
	}
	e.alarm.judged(l.judged)
	if e.pollErr = l.err; l.err != nil {
		e.heed(l.err)
		if !errors.Is(l.err, context.Canceled) {
			e.logThrottled("the outcomes could not be looked at: " + l.err.Error())
		}
		return
	}
	e.asOf = e.pollBegan
	e.idle, e.lag, e.catchingUp = l.idle, l.lag, false
}

// heed takes down what ends the run, however often it is tried: that its letters are gone, or that it may not do what it has to.
func (e *engine) heed(err error) {
	e.topicGone = e.topicGone || errors.Is(err, ErrTopicRecreated)
	if _, denied := errors.AsType[*permission.DeniedError](err); denied {
		e.missingPermission = err
	}
}

// record is the run as it stands now.
func (e *engine) record(now time.Time) *record {
	rec := *e.rec
	rec.State, rec.Waiting, rec.Heartbeat, rec.Counts = e.state, e.waiting, now, Counts(e.flights.Counts())
	if e.waiting != "" && e.state != Watching { // where nothing is sent anyway
		rec.State = Waiting
	}
	return &rec
}

// reportSkips tells the caller how it goes.
func (e *engine) reportSkips(message string) {
	now := time.Now()
	e.reported = now
	if e.on == nil {
		return
	}
	ev := Event{Outcome: e.record(now).outcome(e.topics.dlq), Rate: e.bucket.rate, Message: message}
	e.on(ev)
}

// logEvery is how often the same is told, and maxLogged of how many messages that is remembered.
const (
	logEvery  = 10 * time.Second
	maxLogged = 1_000
)

// logThrottled tells something once in ten seconds.
func (e *engine) logThrottled(message string) {
	now := time.Now()
	if now.Sub(e.logged[message]) < logEvery {
		return
	}
	if len(e.logged) >= maxLogged {
		maps.DeleteFunc(e.logged, func(_ string, at time.Time) bool { return now.Sub(at) >= logEvery })
	}
	if len(e.logged) >= maxLogged { // rather the same twice than all of them kept
		clear(e.logged)
	}
	e.logged[message] = now
	e.reportSkips(message)
}
