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

// WriteOutcomes records the outcomes that became known after runs had ended, as [Redriver.Status]
// finds them, and returns for how many letters. For letters that are not followed it records that;
// see [Counts.Unfollowed]. Until then the ledger has them as redriven: they are not open, and
// cannot be pruned, though it may never be known whether they were processed. Call it before
// [Redriver.Plan], which writes nothing.
//
// It leaves the letters of an unfinished run alone, and does nothing while there is one. It
// disturbs no process that begins a run, or records outcomes, at the same time.
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

// unresolvedRuns are the finished runs that have letters without an outcome in the ledger; none
// while another run is unfinished.
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

// writeOutcomes records the outcomes of a run. It begins again if another process had the ids
// meanwhile: that one may have recorded them, or have a run now.
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

// tryWriteOutcomes is one try. It finds the outcomes before it initialises the ids, which costs
// other processes time. They are written like a claim: the ledger is read to its end after that,
// and the broker refuses the writes if another process has initialised the ids. So no letter is
// touched that another run has redriven since.
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
