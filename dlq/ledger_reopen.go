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
	// Pending, if not nil, makes Reopen take pending letters ([Redriven]) in place of discarded
	// ones: those for whose entry it returns true. The entry's Target is the copy. No consumer may
	// come to run that copy: else the record is processed twice. redrive.LostCopies.Has knows it.
	Pending func(letter headers.Position, sent Entry) bool
	// Done is called like [DiscardOptions.Done].
	Done func(letter headers.Position, err error)
}

// PendingCopies returns the last entries of pending letters ([Redriven]): their Target is the
// position of the copy. It reads the whole ledger, and uses no earlier Read.
func PendingCopies(ctx context.Context, l *Ledger) (map[headers.Position]Entry, error) {
	sent := map[headers.Position]Entry{}
	err := NewLedger(l.topic, l.name, l.opts...).Read(ctx, nil, func(n *LedgerRecord) {
		switch at := (headers.Position{Topic: l.topic, Partition: n.Record.Partition, Offset: n.Letter}); {
		case n.Run != "" || n.Err != nil || n.Letter < 0 || n.Note != nil:
		case n.Entry.State == Redriven:
			sent[at] = n.Entry
		default:
			delete(sent, at)
		}
	})
	return sent, err
}

// Reopen withdraws that letters were discarded: of the letters that the filter selects, from the
// cursor on, it records those that are [Discarded] or [Compensated] as [Reopened], with the
// operator and the reason. They are open from then on, whoever discarded them: a handler discards
// the record again when it is redriven, unless the handler was changed. The handler's discard
// reports are revoked: the same run may send the letter again. Copies of a letter follow it.
// Letters in other states stay as they are. With Pending it takes redriven letters instead.
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
	scope, sent := DiscardedOnly, map[headers.Position]Entry{}
	if o.Pending != nil {
		if sent, err = PendingCopies(ctx, l); err != nil {
			return 0, fail(err)
		}
		scope = PendingOnly
	}
	var errs []error
	for letter, err := range l.Letters(ctx, f, from, scope) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at := place{letter.Record.Partition, letter.Record.Offset}
		e := Entry{TopicID: l.id, Epochs: letter.Record.LeaderEpoch + 1, State: Reopened, At: time.Now(), By: o.By, Why: o.Why}
		if o.Pending != nil {
			was, known := sent[position(l.topic, at)]
			if !known || !o.Pending(position(l.topic, at), was) {
				continue
			}
			e.Run, e.Target = was.Run, was.Target // the run counts it as unknown
		}
		n.write(ctx, at, e)
		n.revokeReports(ctx, at)
	}
	reopened, err = n.close(ctx)
	if err := errors.Join(append(errs, err)...); err != nil {
		return reopened, fail(err)
	}
	return reopened, nil
}
