package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sidingkafka/siding/dlq"
)

// Status returns the run's progress, and derives outcomes that no process has recorded yet. It
// writes nothing, and ends with ctx. A letter that is a dead letter again counts as failed, even if
// the run counted it as succeeded because it could not see the group's retry topic.
func (r *Redriver) Status(ctx context.Context, topic, id string) (Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return Outcome{}, err
	}
	run, err := r.read(ctx, t, id)
	if err != nil {
		return Outcome{}, within(topic, overtime(ctx, err))
	}
	run.rec.Counts.Skipped = run.skipped
	o := run.rec.outcome(topic)
	_, counts, err := run.derive(ctx)
	if err != nil {
		return o, within(topic, overtime(ctx, err))
	}
	o.Counts = counts
	return o, within(topic, overtime(ctx, run.refailed(ctx, &o.Counts)))
}

// overtime adds to an error that its context has ended. The client returns the last error of a
// broker then, which says nothing of the time.
func overtime(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// Runs lists the runs of a dead-letter topic, oldest first. Their counts are as recorded: those of
// the end, or of the last heartbeat, which is written every five seconds. [Redriver.Status] adds
// later outcomes. If some runs cannot be read, Runs returns the others with the error; they are nil
// if the ledger could not be read.
func (r *Redriver) Runs(ctx context.Context, topic string) ([]Outcome, error) {
	t, err := r.topicsOf(topic, nil)
	if err != nil {
		return nil, err
	}
	ledger, err := r.readLedger(ctx, t, nil)
	if err != nil && !errors.Is(err, dlq.ErrNewerVersion) {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	return RunsIn(ledger)
}

// RunsIn lists the runs of a dead-letter topic as [Redriver.Runs] does, from a ledger that was read
// before.
func RunsIn(ledger *dlq.Ledger) ([]Outcome, error) {
	topic := ledger.Topic()
	all := []Outcome{}
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
