package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// Discard gives up the open letters that the filter selects, from the cursor on: they are written
// down as [Discarded], with who says so and why, which must not be empty, and their copies,
// whatever the filter says of these, as [Duplicate], so that they stay what they are when the
// letter before them has expired. The letters themselves stay where they are. If the ledger was not
// read before, it is read first, and what is written counts when it is read again.
//
// Freeze a cursor, count, ask, and pass the same cursor, so that letters which come meanwhile are
// not given up unseen. Whether a redrive run is under way is not looked at: see [Ledger.Runs].
//
// done, if not nil, is called once for each entry when all replicas in sync have it, with the place
// of its letter, or with why it could not be written; calls are not concurrent. Nothing is written
// where the ledger's topic does not exist, has too few partitions, or has entries that a newer
// siding wrote. Otherwise an error names the first ten letters that were not written down, or says
// why not all were read; discarded is how many were. Of those on their way when ctx ended, some may
// have been as well. To go on, read the ledger and discard again.
func (l *Ledger) Discard(ctx context.Context, f Filter, from Cursor, by, why string, done func(letter headers.Position, err error)) (discarded int64, err error) {
	fail := func(err error) error { return fmt.Errorf("dlq: discard letters of %q: %w", l.topic, err) }
	if by == "" || why == "" {
		return 0, fail(errors.New("say who discards them, and why"))
	}
	if err := l.ensure(ctx); err != nil {
		return 0, err
	}
	if err := l.newer(); err != nil { // of a Read before
		return 0, fail(err)
	}
	n, err := newLedgerWriter(ctx, l, done)
	if err != nil {
		return 0, fail(err)
	}
	var errs []error
	for letter, err := range l.Letters(ctx, f, from, WithCopies) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at := place{letter.Record.Partition, letter.Record.Offset}
		e := Entry{TopicID: l.id, State: Discarded, At: time.Now(), By: by, Why: why}
		if letter.State == Duplicate {
			e.State, e.By, e.Why = Duplicate, "", ""
			e.Target = position(l.topic, place{at.partition, letter.CopyOf})
		}
		n.write(ctx, at, e)
	}
	discarded, err = n.close(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		return discarded, fail(err)
	}
	return discarded, nil
}
