package redrive

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// takenError is why a run is not this process's any more. It wraps ErrTaken.
type takenError struct{ text string }

func (e *takenError) Error() string { return e.text }

func (e *takenError) Unwrap() error { return ErrTaken }

// taken describes what became of a run that another process has.
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

// How long the ledger is read before the ids are initialised: of a run that was fenced nothing is
// open any more; of another one it may be its own transaction for which the reading waits, and to
// initialise them ends it.
const (
	peekFenced = 5 * time.Second
	peek       = time.Second
)

// takeBack is one try. It reads the ledger first: to initialise the ids would fence the process
// that has the run by now.
func (r *Redriver) takeBack(ctx context.Context, h *ownedRun, why error) (*ownedRun, error) {
	claimed := func(now *ownedRun) error {
		switch rec := now.rec; {
		case rec.Token != h.rec.Token:
			return taken(rec)
		case now.recreated:
			return fmt.Errorf("run %s: %w: abort it", rec.ID, ErrTopicRecreated)
		}
		now.rec.Heartbeat = time.Now()
		return nil
	}
	patience := peek
	if txn.IsFenced(why) {
		patience = peekFenced
	}
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now, err := r.read(first, h.topics, h.rec.ID)
	if err == nil {
		err = claimed(now)
	}
	if err != nil && first.Err() == nil {
		return nil, err
	}
	return r.take(ctx, h.topics, h.rec.ID, h.load, claimed)
}
