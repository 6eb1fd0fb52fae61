package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// counted reports a failed run to the guard. It reports whether the record stays where it is,
// because the run was a probe. That is no attempt.
func (r *runner) counted(a *attempt, rec *kgo.Record, err error, result classify.Result) (stays bool) {
	if r.lane.guard == nil {
		return false
	}
	outcome := outcomeOf(result)
	r.unit.failure = failedRun{rec: rec, err: err, result: result, shown: r.c.cfg.ErrorText}
	r.countRuns(outcome, 1)
	if !r.unit.run.Probe() || outcome == guard.Good || outcome == guard.Failed && r.lane.source.givesWay(r.unit) {
		return false
	}
	r.attemptTelemetry.failed(r.c.telemetry, a, outcomeProbed, r.unit.failure.badRun().Message, result)
	r.leave(rec)
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
