package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/breaker"
)

// succeeded tells the breaker of handled records.
func (r *runner) succeeded(n int64) {
	r.unit.outcome = breaker.Good
	r.tell(breaker.Good, n, nil)
}

// counted tells the breaker of a failed run. It reports whether the record stays where it is,
// because the run was a probe. That is no attempt.
func (r *runner) counted(a *attempt, rec *kgo.Record, err error, result classify.Result) (stays bool) {
	b := r.lane.breaker
	if b == nil {
		return false
	}
	is := func() breaker.BadRun {
		return breaker.BadRun{Class: result.Class, Message: textOf(err, result.Message, r.c.cfg.ErrorText)}
	}
	outcome := outcomeOf(result)
	r.unit.outcome = outcome
	r.tell(outcome, 1, is)
	if !r.unit.permit.Probe() || outcome == breaker.Decided {
		return false
	}
	last := is()
	b.NoteProbe(last)
	r.attemptTelemetry.failed(r.c.telemetry, a, outcomeProbed, last.Message, result)
	r.leave(rec)
	return true
}

// tell has the breaker count runs. Those of remnants count only with a permit, and as a tier's do:
// one that began in the ramp may end after it.
func (r *runner) tell(outcome breaker.Outcome, n int64, is func() breaker.BadRun) {
	u := r.unit
	if u.remnant && !u.permit.OK() {
		return
	}
	reading := r.c.clock.Reading.Load()
	if !r.lane.breaker.Off() {
		r.lane.breaker.Count(reading, outcome, n, u.tier != nil || u.remnant, u.retry, is)
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
		r.lane.breaker.Count(t.reading, t.outcome, t.n, r.unit.tier != nil || r.unit.remnant, r.unit.retry, nil)
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
func outcomeOf(r classify.Result) breaker.Outcome {
	switch {
	case r.Verdict == classify.VerdictRetry:
		return breaker.Failed
	case r.Verdict == classify.VerdictTerminal && (r.Default || r.Kind == classify.KindPanic):
		return breaker.Defect
	}
	return breaker.Decided
}
