package redrive

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// takenError reports that another process owns the run, or ended it. It wraps ErrTaken.
type takenError struct{ text string }

func (e *takenError) Error() string { return e.text }

func (e *takenError) Unwrap() error { return ErrTaken }

// taken returns the error for a run that another process claimed, with the run's present state.
func taken(rec *record) error {
	text := fmt.Sprintf("%v: %s", ErrTaken, rec.Owner)
	switch {
	case rec.State == Aborted && strings.HasPrefix(rec.Cause, byHand):
		text = "it was " + rec.Cause
	case rec.State == Aborted:
		text += ", and it was aborted: " + rec.Cause
	case rec.State.Finished():
		text += fmt.Sprintf(", and it is %s", rec.State)
	}
	return &takenError{fmt.Sprintf("run %s: %s", rec.ID, text)}
}

// takeBack is one try of retake. It reads the ledger first, because initialising the ids would
// fence a process that owns the run by now.
func (r *Redriver) takeBack(ctx context.Context, run *ownedRun, why error) (*ownedRun, error) {
	patience := peekOpen
	if txn.IsFenced(why) {
		patience = peekFenced
	}
	return r.take(ctx, run.topics, run.rec.ID, run.load, patience, func(now *ownedRun) error {
		switch rec := now.rec; {
		case rec.Token != run.rec.Token:
			return taken(rec)
		case now.recreated:
			return fmt.Errorf("run %s: %w: abort it", rec.ID, ErrTopicRecreated)
		}
		now.rec.Heartbeat, now.rec.Timeout = time.Now(), run.load.raised()
		return nil
	})
}
