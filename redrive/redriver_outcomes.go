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

// WriteOutcomes records outcomes that became known after runs had ended, as [Redriver.Status]
// derives them. It returns the number of letters. Letters that are not followed are recorded as
// such; see [Counts.Unfollowed]. Until then the ledger has all these letters as redriven: they are
// neither open nor may they be pruned. Call WriteOutcomes before [Redriver.Plan], which writes
// nothing.
//
// It does nothing while the topic has an unfinished run. It does not disturb a process that begins
// a run, or records outcomes, at the same time.
func (r *Redriver) WriteOutcomes(ctx context.Context, topic string) (resolved int64, err error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return 0, err
	}
	ids, err := r.unresolvedRuns(ctx, t)
	for _, id := range ids {
		var n int64
		if n, err = r.writeOutcomes(ctx, t, id); err != nil {
			err = fmt.Errorf("record the outcomes of run %s: %w", id, err)
			break
		}
		resolved += n
	}
	return resolved, within(topic, err)
}

// unresolvedRuns returns the finished runs with letters that have no outcome in the ledger; none
// while a run is unfinished.
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

// writeOutcomes records the outcomes of a run. It begins again if another process initialised the
// ids meanwhile, because that process may have recorded them, or may own a run now.
func (r *Redriver) writeOutcomes(ctx context.Context, t *topics, id string) (int64, error) {
	for {
		n, err := r.tryWriteOutcomes(ctx, t, id)
		if !errors.Is(err, txn.ErrUncertain) {
			return n, err
		}
		if pause(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// tryWriteOutcomes is one try. It finds the outcomes before it initialises the ids, because that
// costs other processes time. The writes are guarded like a claim: they follow another reading of
// the ledger to its end. The broker refuses them if another process has initialised the ids. So
// they do not touch a letter that another run has redriven since.
func (r *Redriver) tryWriteOutcomes(ctx context.Context, t *topics, id string) (int64, error) {
	run, err := r.read(ctx, t, id)
	if err != nil {
		return 0, err
	}
	verdicts, counts, err := run.derive(ctx)
	if err != nil || len(verdicts)+len(run.unfollowed) == 0 {
		return 0, err
	}
	// a run that began meanwhile must not be fenced
	if ids, err := r.unresolvedRuns(ctx, t); err != nil || !slices.Contains(ids, id) {
		return 0, err
	}
	w, err := txn.Open(ctx, r.cfg.Kafka, t.dlq, txn.Timeout, false)
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
	now.writers, now.rec.Counts.Retrying = w, counts.Retrying
	return now.writeOutcomes(ctx, verdicts)
}
