package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// Discard discards the open letters that the filter selects, from the cursor on. It records each as
// [Discarded], with who says so and why, which must not be empty. It records their copies as
// [Duplicate], whatever the filter says about these, so that they stay resolved when the letter
// before them has expired. The letters themselves stay in the topic. A ledger that was not read
// before is read first; what Discard writes counts when it is read again.
//
// Freeze a cursor, count, ask, and pass the same cursor: letters that come meanwhile are then not
// discarded unseen. Discard does not check whether a redrive run is under way: see [Ledger.Runs].
//
// done, if not nil, is called once for each entry, with the place of its letter: when all replicas
// in sync have the entry, or with the error why it was not written. Calls are not concurrent.
// Nothing is written if the ledger's topic does not exist, has too few partitions, or has entries
// that a newer siding wrote. Otherwise the error names the first ten letters that were not
// recorded, or says why not all letters were read; discarded is how many were recorded. Entries in
// flight when ctx ended may have been written too. To continue, read the ledger and discard again.
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
