package consumer

import (
	"errors"
	"runtime/debug"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
	"github.com/sidingkafka/siding/headers"
)

// retryInPlace repeats the run in place. over reports that there is nothing left to do: the record
// is finished (nil), or must stay (an error).
func (r *runner) retryInPlace(a *attempt, err error, result classify.Result) (_ error, _ classify.Result, over bool) {
	policy := r.lane.policy.Immediate
	for n := 1; n <= policy.Attempts && result.Verdict == classify.VerdictRetry; n++ {
		asked := r.lane.policy.asked(result)
		if asked > policy.Max {
			break
		}
		wait := plus(asked, policy.wait(n), 1)
		before := r.attemptTelemetry.spanContext()
		message := textOf(err, result.Message, r.c.cfg.ErrorText)
		r.attemptTelemetry.failed(r.c.telemetry, a, outcomeRetried, message, result)
		r.source.keepEarlier(headers.Attempt{Run: n, Class: result.Class, At: time.Now(), Verdict: result.Verdict.String()}, message)
		if !r.waitInPlace(wait) {
			return errors.Join(ErrDraining, err), result, true
		}
		if r.lane.guard.Holds() || r.c.isPaused(r.lane.topic) {
			r.leave()
			return err, result, true
		}
		var run guard.Run
		if r.lane.guard.Noted() != nil {
			var ok bool
			if run, ok = r.lane.guard.Retry(r.lane); !ok {
				break
			}
		}
		again, rec := new(attempts), r.asRead()
		next := again.ofOne(r.feed.origin, rec, nil)
		next.off = a.off
		r.attemptTelemetry.before = before
		err = r.attemptSafely(again, rec)
		switch {
		case err == nil:
			next.end() // the next record's attempt is of another row
			r.lane.guard.End(run, guard.Good, nil)
			r.finished(a.off)
			r.handled-- // the first run is the guard's sample
			r.c.recordLog.countHandled(r.c.telemetry, r.lane.topic, 1)
			r.report()
			return nil, result, true
		case next.drained():
			r.lane.guard.End(run, guard.Void, nil)
			r.cutOff()
			return err, result, true
		}
		a = next
		result = r.c.cfg.Classifier.Classify(err)
		r.lane.guard.End(run, outcomeOf(result), nil)
	}
	return err, result, false
}

// waitInPlace waits between two runs of a record. No handler runs meanwhile, so it lends the
// worker's slot. The worker keeps the unit, and thereby the order. It reports false if the lane is
// revoked. See DESIGN.md, "Retries in place".
func (r *runner) waitInPlace(d time.Duration) bool {
	r.current = nil
	r.unit.current.Store(nil)
	lent := r.c.workerPool.lend()
	if waitOn(r.lane, time.After(d)) && (!lent || r.c.workerPool.reclaim(r.lane.stopping)) {
		return true
	}
	if lent {
		r.c.workerPool.takeOver()
	}
	return false
}

// attemptSafely is attempt for calls outside of guarded.
func (r *runner) attemptSafely(in *attempts, rec *kgo.Record) (err error) {
	defer func() {
		if value := recover(); value != nil {
			in.each[0].end()
			r.attemptTelemetry.stop(r.c.telemetry)
			err = &classify.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return r.attempt(in, 0, rec)
}

// leave leaves the running record where it is, as it was read.
func (r *runner) leave() {
	u := r.unit
	if u.stays = true; u.tier != nil {
		return
	}
	rec := r.asRead()
	if rec.Headers = r.read; u.item != nil {
		u.item.rec = rec
		return
	}
	u.recs = slices.Clone(u.recs) // the attempts keep the others
	u.recs[u.ran] = rec
}

// asRead returns the running record as its handler got it, for the next run. It is another one: a
// goroutine of the handler may still have the last one, whose context the attempt's Value reads.
func (r *runner) asRead() *kgo.Record { return new(r.before) }
