package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/consumer/internal/guard"
)

// failedRun is a failed run of a record.
type failedRun struct {
	rec    *kgo.Record
	err    error
	result classify.Result
	round  int64              // of probes, if it was one
	shown  func(error) string // Config.ErrorText
}

// badRun returns what the guard keeps of the failure.
func (x *failedRun) badRun() guard.BadRun {
	return guard.BadRun{Class: x.result.Class, Message: cut(textOf(x.err, x.result.Message, x.shown), mostError)}
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
