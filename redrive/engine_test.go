package redrive

import (
	"errors"
	"testing"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/inflight"
)

// The answer to the last commit was lost. The run claims itself again, and is over: another record
// of it would have no selection.
func TestRunEngine_WritesNothingAfterTheFinalRecord(t *testing.T) {
	t.Parallel()
	doomed := &FailedAgainError{Cause: "tax"}
	for _, run := range []*ownedRun{{rec: &record{State: Done}}, {rec: &record{State: Aborted}, abortErr: doomed}} {
		err := runEngine(t.Context(), run, nil) // without writers
		if again, _ := errors.AsType[*FailedAgainError](err); again != run.abortErr || (err != nil) != (run.abortErr != nil) {
			t.Errorf("a run that is %s ended with %v", run.rec.State, err)
		}
	}
}

// A letter leaves the in-flight letters when a poll finds its outcome, before the loop gets the
// outcome. A run that ended in between left the letter without an outcome for ever.
func TestEngine_IsNotOverWhileAPollIsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := &engine{
		ownedRun: &ownedRun{topics: &topics{dlq: "orders.dlq", ledger: "orders.dlq.ledger"}, rec: &record{ID: "r", Pace: Pace{Window: time.Second}}},
		flights:  inflight.New(inflight.Counts{}, nil, nil), state: Watching, lastSent: now.Add(-time.Minute), heartbeat: now, reported: now,
		sender: &sender{}, poller: &poller{asOf: now, began: now, ended: now, cancel: func() {}},
	}
	if over, err := e.advance(t.Context(), t.Context(), now); over || err != nil {
		t.Errorf("it is over: %v, %v", over, err)
	}
}
