package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/dlq"
)

// Status is what became of a run's letters by now. It writes nothing, and finds out
// itself what no engine has written down yet: of a run that is over, or whose process
// is gone, letters may have an outcome since. Letters that are dead letters again
// have failed, also where the run took them for processed because it could not see
// the retry topic in which they were.
func (r *Redriver) Status(ctx context.Context, topic, id string) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	h, err := r.read(ctx, t, id)
	if err != nil {
		return Outcome{}, within(topic, err)
	}
	h.rec.Counts.Skipped = h.skipped
	o := h.rec.outcome(topic)
	_, counts, err := h.derive(ctx)
	if err != nil {
		return o, within(topic, err)
	}
	o.Counts = counts
	return o, within(topic, h.refailed(ctx, &o.Counts))
}

// Runs are the runs of a dead-letter topic, oldest first, each with the counts that it wrote down
// itself: those of its end, or of its last heartbeat, every five seconds. [Redriver.Status] finds
// out what became known since. With an error about a run that can't be read come the others.
func (r *Redriver) Runs(ctx context.Context, topic string) ([]Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return nil, err
	}
	ledger, err := r.readLedger(ctx, t, nil)
	if err != nil && !errors.Is(err, dlq.ErrNewerVersion) {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	var all []Outcome
	var errs []error
	for rec, err := range recordsIn(ledger) {
		if err != nil {
			errs = append(errs, within(topic, err))
			continue
		}
		all = append(all, rec.outcome(topic))
	}
	slices.SortStableFunc(all, func(a, b Outcome) int { return a.Started.Compare(b.Started) })
	return all, errors.Join(errs...)
}
