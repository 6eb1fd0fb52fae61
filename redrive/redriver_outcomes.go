package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/internal/txn"
)

// WriteOutcomes writes down what became of letters that had no outcome yet when their runs
// ended, as [Redriver.Status] finds it out, and returns of how many; of those that
// nobody follows, see [Counts.Unfollowed], that this is so. Until somebody
// does, the ledger says of them that they were brought back: they are not open,
// though it may never be known whether they were processed, and can't be pruned. Call
// it before [Redriver.Plan]; as the plan changes nothing, it does not do so itself.
//
// It leaves alone what belongs to a run that is not over, and does nothing at all
// while there is one. Who begins a run meanwhile, or settles, is not disturbed.
func (r *Redriver) WriteOutcomes(ctx context.Context, topic string) (settled int64, err error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return 0, err
	}
	ids, err := r.unresolvedRuns(ctx, t)
	for _, id := range ids {
		var n int64
		if n, err = r.writeOutcomes(ctx, t, id); err != nil {
			err = fmt.Errorf("settle run %s: %w", id, err)
			break
		}
		settled += n
	}
	return settled, within(topic, err)
}

// unresolvedRuns are the finished runs of whose letters some have no outcome in the ledger; none
// while another one goes on.
func (r *Redriver) unresolvedRuns(ctx context.Context, t *topics) (ids []string, err error) {
	ledger, err := r.readLedger(ctx, t, nil)
	if err != nil || ledger.Count(dlq.Redriven) == 0 {
		return nil, err
	}
	for rec, err := range recordsIn(ledger) {
		switch {
		case err != nil:
			return nil, err
		case !rec.State.Finished():
			return nil, nil
		case ledger.Pending(rec.ID) > 0 && !isOther(rec.topicID(), ledger.TopicID()):
			ids = append(ids, rec.ID)
		}
	}
	return ids, nil
}

// writeOutcomes settles a run. Where somebody else had the ids meanwhile it begins again: they may
// have settled it, or have a run now.
func (r *Redriver) writeOutcomes(ctx context.Context, t *topics, id string) (int64, error) {
	for {
		n, err := r.tryWriteOutcomes(ctx, t, id)
		if !errors.Is(err, txn.ErrUncertain) {
			return n, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// tryWriteOutcomes is one try of it. The outcomes are found before the ids are initialised, which
// takes the time of others. They are written as a claim is: the ledger is read to its end after
// that, and the broker refuses what is written when somebody else has the ids. So no letter is
// touched that another run has brought back since.
func (r *Redriver) tryWriteOutcomes(ctx context.Context, t *topics, id string) (int64, error) {
	h, err := r.read(ctx, t, id)
	if err != nil {
		return 0, err
	}
	verdicts, _, err := h.derive(ctx)
	if err != nil || len(verdicts)+len(h.unfollowed) == 0 {
		return 0, err
	}
	// a run that began meanwhile is not to be fenced
	if ids, err := r.unresolvedRuns(ctx, t); err != nil || !slices.Contains(ids, id) {
		return 0, err
	}
	w, err := txn.Open(ctx, r.cfg.Kafka, t.dlq, txn.Timeout)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if err := w.Fence(ctx, r.cfg.Kafka, t.ledger, t.ledger); err != nil {
		return 0, err
	}
	if ids, err := r.unresolvedRuns(ctx, t); err != nil || !slices.Contains(ids, id) {
		return 0, err
	}
	now, err := r.read(ctx, t, id)
	if err != nil {
		return 0, err
	}
	now.writers = w
	return now.writeOutcomes(ctx, verdicts)
}
