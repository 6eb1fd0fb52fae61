package redrive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/inflight"
	"github.com/sidingkafka/siding/redrive/internal/letters"
	"github.com/sidingkafka/siding/redrive/internal/permission"
)

const (
	tickEvery   = 20 * time.Millisecond
	reportEvery = 200 * time.Millisecond
	// closeTimeout bounds the work after the caller's context ended.
	closeTimeout = 10 * time.Second
)

// engine is the state machine of a run. It decides when letters may be sent, when outcomes are
// polled, and when the run is over. One loop owns its fields. Work that waits for a broker runs in
// other goroutines and answers through channels. The sender writes copies, the poller finds their
// outcomes, and the watch reports failures. See DESIGN.md, "States of a run".
type engine struct {
	*ownedRun
	on      func(Event)
	flights *inflight.Letters
	alarm   *alarm
	sender  *sender
	poller  *poller

	state     State
	waiting   string    // the reason for which nothing is sent
	ramp      time.Time // when the ramp began
	lastSent  time.Time
	heartbeat time.Time
	reported  time.Time
	fatal     error // ends the run, because a retry would fail again

	problems chan error // of the watch
	throttle throttle
	skips    int // letters that this process skipped
}

// runEngine continues a run until it is over, aborts itself, is interrupted by ctx, or belongs to
// another process.
func runEngine(ctx context.Context, run *ownedRun, on func(Event)) error {
	// its final record is written, and only the broker's answer was lost
	if run.rec.State.Finished() {
		if run.abortErr != nil {
			return run.abortErr
		}
		return nil
	}
	now, resumed := time.Now(), run.rec.Counts.Sent > 0
	e := &engine{
		ownedRun: run, on: on, flights: inflight.New(inflight.Counts(run.rec.Counts), run.inFlight, run.settled()), alarm: newAlarm(run.rec),
		state: Canary, lastSent: now, heartbeat: now, problems: make(chan error, 16),
	}
	e.sender = newSender(run, e.alarm.fired, now)
	// its letters may still be in a retry topic, so there is no canary to wait for
	if run.rec.pastCanary() {
		e.state, e.ramp = Sending, now
		e.alarm.stage(false, now)
	}
	if run.abortErr != nil {
		e.alarm.withdraw(run.abortErr.Cause, run.abortErr.Seen...)
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watch, err := startWatch(ctx, run, e.flights, e.alarm, e.problem)
	if err != nil {
		return e.unwatched(ctx, err)
	}
	defer watch.Close()
	e.sender.wrote = watch.SkipRecords
	e.poller = newPoller(newOutcomes(run, watch).poll, now, resumed)
	read := readLetters(work, run, e.sender.reads)
	e.sender.letters = read
	defer func() { // no goroutine outlives the engine
		stop()
		for range read {
			// Letters after the end of the run are dropped.
		}
		e.poller.close()
	}()
	return e.loop(ctx, work)
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
		wait, err := e.sender.pump(e.maySend)
		if err != nil {
			return err
		}
		if e.state == Canary && e.canaryFull() {
			e.sender.handOver()
		}
		if wait > 0 {
			token.Reset(wait)
		}
		select {
		case <-ctx.Done():
			return e.interrupt(context.Cause(ctx))
		case <-e.alarm.fired:
			return e.abort()
		case r := <-e.sender.incoming():
			e.read(r)
		case done := <-e.sender.ends:
			if err := e.transactionEnded(done); err != nil {
				return err
			}
		case result := <-e.poller.results:
			e.applyPoll(result)
		case err := <-e.problems:
			e.logThrottled(err.Error())
		case <-e.sender.room():
		case <-token.C:
		case <-tick.C:
		}
	}
}

// problem takes an error from a goroutine beside the loop.
func (e *engine) problem(err error) {
	select {
	case e.problems <- err:
	default: // enough others wait for the loop
	}
}

// advance moves the run to its next state, and starts work that is due. It reports whether the run
// is over.
func (e *engine) advance(ctx, work context.Context, now time.Time) (over bool, err error) {
	switch {
	case errors.Is(e.fatal, ErrTopicRecreated):
		return true, e.abandon()
	case e.fatal != nil:
		return true, e.interrupt(e.fatal)
	}
	was := e.state
	if e.next(now) {
		return true, e.finish(ctx)
	}
	if e.state == Sending {
		// a run that waits drains nothing, and that is no sign of new failures
		if e.waiting != "" || e.poller.behind {
			e.alarm.stage(false, now)
		}
		e.alarm.check(now)
	}
	windowOver := e.state == Watching && !now.Before(e.windowEnd()) && e.poller.ended.Before(e.windowEnd())
	if e.poller.due(now) || windowOver && !e.poller.underWay() {
		e.poller.begin(work)
	}
	// also for a new state, which others follow
	if e.state != was || now.Sub(e.heartbeat) >= heartbeatEvery {
		e.heartbeat = now
		e.sender.record(e.record(now).ledgerRecord(e.topics.ledger))
	}
	if e.state != was || now.Sub(e.reported) >= reportEvery {
		e.report("")
	}
	return false, e.sender.tick(now)
}

// next sets the state of the run and the reason for a wait. It reports whether the window is over
// and all failures within it are known.
func (e *engine) next(now time.Time) (over bool) {
	e.waiting = ""
	c := e.flights.Counts()
	switch e.state {
	case Canary:
		switch {
		case c.Pending == 0 && !e.flights.Silent() && !e.poller.behind && (inCanary(c, c.Sent) >= int64(e.rec.Pace.Canary) || e.sender.done()):
			e.state, e.ramp = Sending, now
			e.alarm.stage(false, now)
		case c.Pending > 0 && e.canaryFull() && now.Sub(e.lastSent) >= canaryPatience:
			e.waiting = fmt.Sprintf("the canary has no outcome after %v: is the consumer running?", canaryPatience)
		}
	case Sending:
		e.sender.bucket.pace(e.rec.Pace.rateAt(now.Sub(e.ramp)), now)
		lag, limit := max(e.flights.Unfinished(), e.poller.lag), e.rec.Pace.MaxLag
		switch {
		case e.sender.done():
			e.state = Watching
			e.alarm.stage(false, time.Time{})
		case limit > 0 && lag >= limit:
			e.waiting = fmt.Sprintf("the group is behind: %d records are due and unfinished, and the limit is %d", lag, limit)
		}
	case Watching:
		switch end := e.windowEnd(); {
		case now.Before(end):
		// a poll under way may have found outcomes that are to be recorded
		case !e.poller.asOf.Before(end) && !e.poller.underWay():
			return true
		case e.poller.err != nil:
			e.waiting = "the window is over, but the failures within it are not known yet: " + e.poller.err.Error()
		}
	}
	if e.waiting == "" && len(e.poller.idle) > 0 && e.state != Watching {
		e.waiting = fmt.Sprintf("no consumer would run the records: %s without members", strings.Join(e.poller.idle, ", "))
	}
	if held := e.poller.held; held != "" && (e.state == Canary || e.waiting != "") && len(e.poller.idle) == 0 {
		e.waiting = held
	}
	return false
}

func (e *engine) windowEnd() time.Time { return e.lastSent.Add(e.rec.Pace.Window) }

// inCanary returns how many of the letters count for the canary: all but those whose outcome cannot
// be known. Unfollowed letters count, since they may be dead letters again within the window.
func inCanary(c inflight.Counts, letters int64) int64 { return letters - c.Unknown }

// canaryFull reports whether the sender has taken as many letters as the canary has.
func (e *engine) canaryFull() bool {
	return inCanary(e.flights.Counts(), e.sender.taken) >= int64(e.rec.Pace.Canary)
}

// maySend reports whether a letter may be sent now.
func (e *engine) maySend() bool {
	return e.waiting == "" && !e.poller.behind && (e.state == Sending || e.state == Canary && !e.canaryFull())
}

// transactionEnded counts the letters of a committed transaction.
func (e *engine) transactionEnded(done *transaction) error {
	stays, err := e.sender.ended(done)
	if stays != nil {
		e.skip(*stays)
	}
	if err != nil || !done.committed || len(done.copies) == 0 {
		return err
	}
	followed := make([]inflight.Sent, 0, len(done.copies))
	var unfollowed []letters.Place
	for _, o := range done.copies {
		if e.follows(o.group) {
			followed = append(followed, inflight.SentTo(o.Place, o.group, o.target()))
		} else {
			unfollowed = append(unfollowed, o.Place)
		}
	}
	e.flights.Sent(followed, unfollowed)
	e.lastSent = time.Now()
	e.alarm.onSent(e.lastSent, len(done.copies))
	return nil
}

// read takes letters from the reader.
func (e *engine) read(r reading) {
	e.sender.buffer = append(e.sender.buffer, r.ready...)
	for _, s := range r.skipped {
		e.skip(s)
	}
	if r.err != nil {
		e.keepFatal(r.err)
		e.logThrottled(r.err.Error())
	}
	if !r.end {
		return
	}
	e.sender.letters = nil
	for at := range r.missing.All() { // retention deleted them after the plan
		e.flights.Skip(SkippedExpired)
		e.sender.record(e.entry(at, dlq.Entry{State: dlq.Expired}))
	}
}

// maxReportedSkips is the number of skipped letters that a run reports one by one.
const maxReportedSkips = 10

// skip counts a skipped letter, and reports the first ones.
func (e *engine) skip(s skip) {
	e.flights.Skip(s.why)
	if e.skips++; e.skips > maxReportedSkips {
		e.logThrottled("more letters stay: the counts of skipped letters have them")
		return
	}
	text := fmt.Sprintf("letter %v stays: %s", s.at.In(e.topics.dlq), s.why)
	if s.err != nil {
		text += ": " + s.err.Error()
	}
	e.report(text) // not throttled: each letter is reported once
}

// applyPoll takes the result of a poll.
func (e *engine) applyPoll(result pollResult) {
	e.poller.take(result)
	// also after an error: verdicts that were found are not in flight any more
	e.recordVerdicts(result.verdicts)
	e.alarm.judged(result.judged)
	if result.err == nil {
		return
	}
	e.keepFatal(result.err)
	if !errors.Is(result.err, context.Canceled) {
		e.logThrottled("the outcomes could not be polled: " + result.err.Error())
	}
}

// recordVerdicts adds the outcomes of letters to the next transaction.
func (e *engine) recordVerdicts(verdicts []inflight.Verdict) {
	for _, v := range verdicts {
		e.sender.record(e.applyVerdict(v)...)
	}
}

// keepFatal keeps an error that no retry can cure: the letters are gone, or a permission is
// missing.
func (e *engine) keepFatal(err error) {
	_, denied := errors.AsType[*permission.DeniedError](err)
	if errors.Is(err, ErrTopicRecreated) || denied && e.fatal == nil {
		e.fatal = err
	}
}

// record returns the run's record as of now.
func (e *engine) record(now time.Time) *record {
	rec := *e.rec
	rec.State, rec.Waiting, rec.Heartbeat, rec.Counts = e.state, e.waiting, now, Counts(e.flights.Counts())
	rec.RampBegan, rec.Timeout = e.ramp, e.sender.run.load.raised()
	if rec.WindowEnds = (time.Time{}); e.state == Watching {
		rec.WindowEnds = e.windowEnd()
	}
	if e.waiting != "" && e.state != Watching { // in Watching nothing is to be sent
		rec.State = Waiting
	}
	return &rec
}

// report reports the progress to the caller, with an optional message.
func (e *engine) report(message string) {
	e.reported = time.Now()
	if e.on != nil {
		e.on(Event{Outcome: e.record(e.reported).outcome(e.topics.dlq), Rate: e.sender.bucket.rate, Message: message})
	}
}

// logThrottled reports a message unless it was reported within the last ten seconds.
func (e *engine) logThrottled(message string) {
	if e.throttle.first(message) {
		e.report(message)
	}
}
