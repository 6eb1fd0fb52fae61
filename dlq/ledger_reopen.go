package dlq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidingkafka/siding/headers"
)

// ReopenOptions are the options of [Ledger.Reopen].
type ReopenOptions struct {
	// By is the operator's name, and Why the reason. Both are required, and have 4,096 bytes at
	// most.
	By, Why string
	// Done is called like [DiscardOptions.Done].
	Done func(letter headers.Position, err error)
}

// Reopen withdraws that letters were discarded: of the letters that the filter selects, from the
// cursor on, it records those that are [Discarded] or [Compensated] as [Reopened], with the
// operator and the reason. They are open from then on, whoever discarded them: a handler discards
// the record again when it is redriven, unless the handler was changed. The handler's discard
// reports are revoked: the same run may send the letter again. Copies of a letter follow it.
// Letters in other states stay as they are.
//
// Reopen checks, fails and can be continued like [Ledger.Discard], also if a redrive run is
// unfinished. A run that begins meanwhile may have read the ledger before a letter is reopened, and
// then does not redrive it. reopened is how many letters are recorded as reopened.
func (l *Ledger) Reopen(ctx context.Context, f Filter, from Cursor, o ReopenOptions) (reopened int64, err error) {
	fail := func(err error) error { return fmt.Errorf("dlq: reopen letters of %q: %w", l.topic, err) }
	n, err := l.decide(ctx, o.By, o.Why, Reopened, o.Done)
	if err != nil {
		return 0, fail(err)
	}
	var errs []error
	for letter, err := range l.Letters(ctx, f, from, DiscardedOnly) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at := place{letter.Record.Partition, letter.Record.Offset}
		n.write(ctx, at, Entry{TopicID: l.id, State: Reopened, At: time.Now(), By: o.By, Why: o.Why})
		n.revokeReports(ctx, at)
	}
	reopened, err = n.close(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		return reopened, fail(err)
	}
	return reopened, nil
}
