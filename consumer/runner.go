package consumer

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/forward"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/headers"
)

// runner runs one unit on a worker: attempts, retries in place, outcomes.
type runner struct {
	c    *Consumer
	lane *lane
	feed *feed
	unit *unit
	attemptTelemetry
	current *attempts // what unit.current has

	// The handler gets the fetched records themselves, and may assign to their fields. The runner
	// therefore notes beforehand what a forward needs.
	source copySource
	// The record as the handler gets it, where the policy or the guard may have it run again.
	before    kgo.Record
	mayRepeat bool
	// The headers as read, siding's among them, if the record has any.
	read []kgo.RecordHeader
	// The finished offsets of the unit that the tracker has not been given yet: [from, doneTo).
	doneTo     int64
	from       int64
	handled    int64 // the records among them
	reportedAt int64 // coarse reading of the last report to the tracker
	// Runs that ended alike within a tick, and which the guard has not counted. There are none
	// unless it never holds: then only the budget of retries counts, and can wait for a tick.
	uncounted struct {
		outcome guard.Outcome
		reading int64
		n       int64
	}
}

// runUnit runs a unit of a lane.
func runUnit(u *unit) {
	l, c := u.feed.lane, u.feed.lane.c
	r := runner{c: c, lane: l, feed: u.feed, unit: u, mayRepeat: u.run.Began() || l.policy.Immediate.Attempts > 0}
	r.attemptTelemetry.enable(c.telemetry, c.clock.Reading.Load())
	if u.parts().dead != nil {
		r.follow(u.odd.dead)
	} else if u.condemned != nil {
		r.condemn()
	} else if u.item != nil {
		r.runItem(u.item)
	} else {
		r.runRecords()
	}
	r.countRest()
	if a := u.current.attempt(); a != nil {
		a.end()
		u.current.Store(nil)
	}
	r.source.Release()
}

// unpack makes the record that the handler sees: as it was first read, with siding's headers parsed
// apart. It reports false if it has dealt with the record: a broken one is dead-lettered, and one
// that is not due is parked or written again.
func (r *runner) unpack(physical *kgo.Record) (rec *kgo.Record, meta *headers.Meta, ok bool) {
	l, f := r.lane, r.unit.tier
	m, err := headers.Parse(physical.Headers)
	now := time.Now()
	if err == nil {
		err = f.parked.Check(&m, physical.Timestamp, now)
	}
	if err != nil {
		l.c.recordLog.add(recordKind{event: eventMalformed, topic: l.topic, reason: string(headers.ReasonMalformed)}, recordExample{
			partition: l.partition, feed: f.topic, offset: physical.Offset, error: err.Error(),
		})
		l.c.telemetry.countRouted(l.topic, "dlq", headers.ClassMalformed, headers.ReasonMalformed)
		copyLane{l}.forwardMalformed(&f.feed, physical, err)
		return nil, nil, false
	}
	user := headers.Strip(physical.Headers)
	if now.UnixMilli() < m.NotBefore.UnixMilli() {
		if f.parked.Repark(physical, now) {
			return nil, nil, false
		}
		seen := copySource{
			Source:    forward.Source{Key: physical.Key, Value: physical.Value, Headers: user, Offset: physical.Offset},
			timestamp: m.Original.Timestamp,
		}
		var again headers.Meta
		copyLane{l}.meta(&again, &seen, &m)
		again.NotBefore = m.NotBefore
		l.copies.Send(seen.Copy(parkedAgain{&f.feed}, f.requeueTopic(&again), &again, now))
		seen.Release()
		return nil, nil, false
	}
	rec = recordAt(m.Original, physical.Key, physical.Value, user)
	rec.Context = physical.Context
	return rec, &m, true
}

// runRecords handles source records in order. A healthy record takes no lock. The tracker learns of
// finished offsets when the unit ends, when a record fails, when the coarse clock has moved, and
// from a commit. So the offsets of slow handlers are committed while the unit runs.
func (r *runner) runRecords() {
	recs := r.unit.recs
	r.unit.first.of(r.feed.origin, recs)
	r.reportedAt = r.c.clock.Reading.Load()
	for r.unit.ran < len(recs) {
		if !r.guarded(func() bool { return r.runFrom(recs) }) || r.unit.parts().end.keeps() {
			break
		}
	}
	r.report()
}

// runFrom runs records until the unit ends (true) or must end early (false).
func (r *runner) runFrom(recs []*kgo.Record) bool {
	limited := r.c.workerPool.limit > 0
	for r.unit.ran < len(recs) {
		if r.lane.hold.Load() && !r.unit.run.Held() || limited && r.c.workerPool.contended() && r.unit.ran > 0 && r.reportedAt != r.c.clock.Reading.Load() {
			return false
		}
		rec := recs[r.unit.ran]
		a := &r.unit.first.each[r.unit.ran]
		a.off = rec.Offset
		r.readSource(rec)

		err := r.attempt(&r.unit.first, r.unit.ran, rec)
		if err != nil {
			if !r.failed(a, nil, err) {
				return false // the record stays
			}
			if r.unit.ran++; r.unit.parts().end.keeps() {
				return false // later records of its key wait
			}
			continue
		}
		r.finished(a.off)
		r.unit.ran++
		if began := r.unit.first.last.Load(); began != r.reportedAt {
			r.report()
			r.reportedAt = began
		}
	}
	return true
}

// readSource keeps what a forward needs of a source record, and takes the reserved headers from it.
func (r *runner) readSource(rec *kgo.Record) {
	r.source.redriven, r.source.earlier = nil, r.source.earlier[:0]
	r.read = rec.Headers
	if len(rec.Headers) > 0 {
		r.source.redriven = r.lane.source.cleanSource(rec)
	}
	r.keep(rec, rec.Offset)
}

// keep keeps what a forward needs of a record that was read at an offset.
func (r *runner) keep(rec *kgo.Record, offset int64) {
	r.source.Key, r.source.Value, r.source.Headers = rec.Key, rec.Value, rec.Headers
	r.source.timestamp, r.source.Offset = rec.Timestamp, offset
}

// runItem handles a single record.
func (r *runner) runItem(it *item) {
	var meta *headers.Meta
	rec, offset := it.rec, int64(0)
	if r.unit.tier == nil {
		offset = rec.Offset
		if h := r.unit.parts().again; h != nil {
			meta = r.readAgain(h, rec)
		} else {
			r.readSource(rec)
		}
	} else {
		physical := r.unit.tier.parked.Unpack(it.parked)
		offset = physical.Offset
		var ok bool
		if rec, meta, ok = r.unpack(physical); !ok {
			return
		}
		r.keep(rec, offset)
	}

	a := r.unit.first.ofOne(r.feed.origin, rec, meta)
	a.off = offset
	r.guarded(func() bool {
		if err := r.attempt(&r.unit.first, 0, rec); err != nil {
			r.failed(a, meta, err)
		} else {
			r.unit.handled = a.off + 1
			r.c.recordLog.countHandled(r.c.telemetry, r.lane.topic, 1)
			r.countRuns(guard.Good, 1)
		}
		return true
	})
}

// attempt runs the handler once. A successful attempt ends when the next one begins, or the unit
// ends.
func (r *runner) attempt(in *attempts, i int, rec *kgo.Record) error {
	a := in.begin(i, r.c.clock.Reading.Load())
	if r.source.redriven != nil {
		a.rareParts().redriven = r.source.redriven
	}
	if r.current != in {
		r.current = in
		r.unit.current.Store(in)
	}
	if r.unit.cancelled.Load() {
		a.abandon(ErrDraining)
	}
	if r.mayRepeat {
		r.before = *rec
	}
	ctx := context.Context(a)
	if r.timing || r.tracing || r.delays && in.meta != nil {
		ctx = r.attemptTelemetry.start(r.c.telemetry, a)
	}
	err := r.c.cfg.Handler(ctx, rec)
	r.attemptTelemetry.stop(r.c.telemetry)
	if err != nil {
		a.end()
	} else if r.timing || r.span != nil {
		r.attemptTelemetry.handled(r.c.telemetry, a)
	}
	return err
}

// guarded runs f and turns a panic of the handler into the failure of the running record. One
// deferred call covers the whole unit, so a healthy record costs nothing. The unit continues after
// the record that panicked.
//
// runtime.Goexit in a handler (for example a test's FailNow) ends the worker's goroutine. The
// record fails as after a panic, and workerPool.worker starts a successor. A deferred function
// routes the record, and must not call the handler, which may call runtime.Goexit again: so the run
// is not repeated in place.
func (r *runner) guarded(f func() bool) bool {
	more, err := r.caught(f)
	if err != nil {
		panicked := err
		more, err = r.caught(func() bool { return r.panicked(panicked, r.failed) })
	}
	if err != nil { // of a rule, or a text: no panic of the handler comes here
		more = r.panicked(err, r.routed)
	}
	return more
}

// caught runs f. It returns a panic as an error, and routes the running record if its handler calls
// runtime.Goexit.
func (r *runner) caught(f func() bool) (more bool, panicked error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if value := recover(); value != nil {
			panicked = &classify.PanicError{Value: value, Stack: debug.Stack()}
			return
		}
		r.panicked(&classify.PanicError{Value: "runtime.Goexit called by the handler", Stack: debug.Stack()}, r.routed)
		r.report()
		r.countRest()
	}()
	more = f()
	returned = true
	return more, nil
}

// panicked ends the run whose handler panicked, and has its record routed.
func (r *runner) panicked(err error, route func(*attempt, *headers.Meta, error) bool) bool {
	a := r.unit.current.attempt()
	a.end()
	r.attemptTelemetry.stop(r.c.telemetry)
	ok := route(a, a.in.meta, err)
	if ok && r.unit.item == nil {
		r.unit.ran++
	}
	return ok
}

// finished extends the range of finished offsets. Offsets of a unit ascend, and no other record was
// delivered between two of them, so one range holds them all.
func (r *runner) finished(offset int64) {
	if r.doneTo == 0 {
		r.from = offset
		r.unit.first.unreported.Store(offset + 1)
	}
	r.doneTo = offset + 1
	r.handled++
}

// report gives the tracker the finished range.
func (r *runner) report() {
	if r.doneTo == 0 {
		return
	}
	r.lane.mu.Lock()
	if r.lane.state != laneGone {
		r.feed.tracker.FinishRange(r.from, r.doneTo-1)
	}
	r.unit.first.unreported.Store(0)
	r.lane.mu.Unlock()
	r.c.recordLog.countHandled(r.c.telemetry, r.lane.topic, r.handled)
	r.countRuns(guard.Good, r.handled)
	r.doneTo, r.handled = 0, 0
}

// failed repeats the run in place, if the policy says so, or decides what happens to a record whose
// handler returned an error, and does it. It reports false if the record stays as it is, because
// its lane is revoked or halts at it.
func (r *runner) failed(a *attempt, meta *headers.Meta, err error) bool {
	return r.judge(a, meta, err, r.lane.policy.Immediate.Attempts > 0)
}

// routed is failed without a further run.
func (r *runner) routed(a *attempt, meta *headers.Meta, err error) bool {
	return r.judge(a, meta, err, false)
}

// judge is failed, or routed.
func (r *runner) judge(a *attempt, meta *headers.Meta, err error, repeats bool) bool {
	r.report() // the range of finished offsets ends before this record
	if a.drained() {
		r.cutOff()
		return false
	}
	result := r.c.cfg.Classifier.Classify(err)
	if r.counted(a, err, result) {
		return false
	}
	if repeats && meta == nil && result.Verdict == classify.VerdictRetry && !r.unit.run.Held() {
		var over bool
		if err, result, over = r.retryInPlace(a, err, result); over {
			return err == nil
		}
	}
	return r.route(a, meta, err, result)
}

// cutOff registers that the lane's drain cancelled the handler. Its record stays, and runs again.
func (r *runner) cutOff() {
	r.lane.cutOff.Add(1)
	r.attemptTelemetry.drained()
}

// counted reports a failed run to the guard. It reports whether the record stays where it is,
// because the run was a probe. That is no attempt.
func (r *runner) counted(a *attempt, err error, result classify.Result) (stays bool) {
	if r.lane.guard == nil {
		return false
	}
	outcome := outcomeOf(result)
	r.unit.failure = failedRun{err: err, result: result, shown: r.c.cfg.ErrorText}
	r.countRuns(outcome, 1)
	if !r.unit.run.Probe() || outcome == guard.Good || outcome == guard.Failed && r.lane.source.givesWay(r.unit) {
		return false
	}
	r.attemptTelemetry.failed(r.c.telemetry, a, outcomeProbed, r.unit.failure.badRun().Message, result)
	r.leave()
	return true
}

// countRuns has the guard count runs that ended alike. A unit that is one run to the guard counts
// when it ends. A redriven record's first delivery is no sample.
func (r *runner) countRuns(outcome guard.Outcome, n int64) {
	u := r.unit
	if n == 0 {
		return
	}
	if u.suspect {
		outcome = outcome.OfSuspect()
	}
	if u.outcome = outcome; u.run.Began() || u.tier != nil {
		return
	}
	reading := r.c.clock.Reading.Load()
	if !r.lane.guard.Off() {
		r.lane.guard.Ran(reading, outcome, n, u.failure.badRun)
		return
	}
	if r.uncounted.outcome != outcome || r.uncounted.reading != reading {
		r.countRest()
		r.uncounted.outcome, r.uncounted.reading = outcome, reading
	}
	r.uncounted.n += n
}

// countRest has the guard count the runs that it has not counted.
func (r *runner) countRest() {
	if t := &r.uncounted; t.n > 0 {
		r.lane.guard.Ran(t.reading, t.outcome, t.n, nil)
		t.n = 0
	}
}
