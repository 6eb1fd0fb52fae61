package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// counted tells the guard of a failed run. It reports whether the record stays where it is, because
// the run was a probe. That is no attempt.
func (r *runner) counted(a *attempt, rec *kgo.Record, err error, result classify.Result) (stays bool) {
	if r.lane.guard == nil {
		return false
	}
	outcome := outcomeOf(result)
	r.unit.failure = failedRun{rec: rec, err: err, result: result, shown: r.c.cfg.ErrorText}
	r.tell(outcome, 1)
	if !r.unit.run.Probe() || outcome == guard.Good || outcome == guard.Failed && r.lane.source.givesWay(r.unit) {
		return false
	}
	r.attemptTelemetry.failed(r.c.telemetry, a, outcomeProbed, r.unit.failure.tell().Message, result)
	r.leave(rec)
	return true
}

// tell has the guard count runs that ended alike. Of a unit that is a run for it, it learns when
// that ends. A redriven record's first delivery is no sample.
func (r *runner) tell(outcome guard.Outcome, n int64) {
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
		r.lane.guard.Ran(reading, outcome, n, u.failure.tell)
		return
	}
	if r.untold.outcome != outcome || r.untold.reading != reading {
		r.tellRest()
		r.untold.outcome, r.untold.reading = outcome, reading
	}
	r.untold.n += n
}

// tellRest tells what is untold.
func (r *runner) tellRest() {
	if t := &r.untold; t.n > 0 {
		r.lane.guard.Ran(t.reading, t.outcome, t.n, nil)
		t.n = 0
	}
}

// leave leaves a record where it is, as it was read.
func (r *runner) leave(rec *kgo.Record) {
	r.unit.stays = true
	if r.unit.tier == nil {
		r.restore(rec)
		rec.Headers = r.read
	}
}

// outcomeOf is what a failure says of an outage.
func outcomeOf(r classify.Result) guard.Outcome {
	switch {
	case r.Verdict == classify.VerdictRetry:
		return guard.Failed
	case r.Verdict == classify.VerdictTerminal && (r.Default || r.Kind == classify.KindPanic):
		return guard.Defect
	}
	return guard.Good
}
