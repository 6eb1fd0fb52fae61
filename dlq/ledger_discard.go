package dlq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/runstate"
)

// DiscardOptions are the options of [Ledger.Discard].
type DiscardOptions struct {
	// By is the operator's name, and Why the reason. Both are required, and have 4,096 bytes at
	// most.
	By, Why string
	// Compensated says that a compensating action resolved what the records asked for: a refund, or
	// an order that was placed again. The ledger records it apart from letters that are only given
	// up.
	Compensated bool
	// Done, if not nil, is called once for each entry, with the position of its letter: when all
	// replicas in sync have the entry, or with the error why it was not written. Calls are not
	// concurrent.
	Done func(letter headers.Position, err error)
}

// Discard discards the open letters that the filter selects, from the cursor on. It records each as
// [Discarded] or [Compensated], with the operator and the reason. It records
// copies of these letters as [Duplicate], whether or not the filter selects them, so that they stay
// resolved when the letter has expired. The letters themselves stay in the topic. If the ledger was
// not read yet, Discard reads it first. Entries that Discard writes count after the next Read.
//
// To ask for confirmation, freeze a cursor, count the letters, and pass the same cursor to Discard.
// So letters that come meanwhile are not discarded unseen.
//
// Discard fails with [ErrUnfinishedRun] if the ledger, as last read, has an unfinished redrive run.
// Call Read before it: a run that began since the last Read is not seen. A run that begins while
// Discard writes may redrive a letter that is being discarded. At its end Discard reads the ledger
// again: the error then names the run and wraps [ErrChanged], though the letters are recorded as
// discarded.
//
// Nothing is written if a run is unfinished, nor if the ledger's topic does not exist, has too few
// partitions, or has entries that a newer siding wrote. Otherwise the error names the first ten
// letters whose entries were not written, or the reason why not all letters were read. discarded is
// how many letters are recorded as discarded. Entries in flight when ctx ended may have been
// written too. To continue, read the ledger and discard again.
func (l *Ledger) Discard(ctx context.Context, f Filter, from Cursor, o DiscardOptions) (discarded int64, err error) {
	fail := func(err error) error { return fmt.Errorf("dlq: discard letters of %q: %w", l.topic, err) }
	as := Discarded
	if o.Compensated {
		as = Compensated
	}
	n, err := l.decide(ctx, o.By, o.Why, as, o.Done)
	if err != nil {
		return 0, fail(err)
	}
	before := maps.Clone(l.runs)
	var errs []error
	for letter, err := range l.Letters(ctx, f, from, WithCopies) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		at := place{letter.Record.Partition, letter.Record.Offset}
		e := Entry{TopicID: l.id, Epochs: letter.Record.LeaderEpoch + 1, State: as, At: time.Now(), By: o.By, Why: o.Why}
		if letter.State == Duplicate {
			e.State, e.By, e.Why = Duplicate, "", ""
			e.Target = position(l.topic, place{at.partition, letter.CopyOf})
		}
		n.write(ctx, at, e)
	}
	discarded, err = n.close(ctx)
	if errs = append(errs, err); discarded > 0 {
		errs = append(errs, l.overtaken(ctx, before))
	}
	if err := errors.Join(errs...); err != nil {
		return discarded, fail(err)
	}
	return discarded, nil
}

// overtaken reads the ledger again, and returns an error if a run began since. Those before have
// ended: none of them redrives.
func (l *Ledger) overtaken(ctx context.Context, before map[string][]byte) error {
	if err := l.Read(ctx, nil, nil); err != nil && !errors.Is(err, ErrNewerVersion) {
		return fmt.Errorf("whether a redrive run began meanwhile, and redrove some of the letters, is not known: %w", err)
	}
	for _, id := range slices.Sorted(maps.Keys(l.runs)) {
		if _, known := before[id]; !known {
			return fmt.Errorf("redrive run %s began meanwhile, and may have redriven letters that are recorded as discarded now: look at its outcomes: %w", id, ErrChanged)
		}
	}
	return nil
}

// maxReason bounds an operator's name and reason.
const maxReason = 4096

// decide returns a writer for an operator's decision about letters, and counts the entries with the
// state.
func (l *Ledger) decide(ctx context.Context, by, why string, as State, done func(headers.Position, error)) (*ledgerWriter, error) {
	if by == "" || why == "" {
		return nil, errors.New("the options By and Why must not be empty")
	}
	if n := max(len(by), len(why)); n > maxReason {
		return nil, fmt.Errorf("the option By or Why has %d bytes, and %d are the most, since each entry has them: name a ticket", n, maxReason)
	}
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	if err := l.newer(); err != nil { // the last Read may have returned this error already
		return nil, err
	}
	if err := l.idle(); err != nil {
		return nil, err
	}
	return newLedgerWriter(ctx, l, as, done)
}

// ErrUnfinishedRun reports that an operator cannot decide about letters, because the ledger has a
// redrive run that is neither done nor aborted. The error around it names the run. The run has read
// the states of its letters: it would redrive what is discarded meanwhile, and it could record a
// reopened letter as processed.
var ErrUnfinishedRun = errors.New("resume or abort it first, or wait until it ends")

// ErrChanged reports that letters have other states than when they were counted. The error around
// it says what changed.
var ErrChanged = errors.New("letters changed since they were counted: count them again")

// idle returns an error if the ledger, as last read, has an unfinished run.
func (l *Ledger) idle() error {
	for _, id := range slices.Sorted(maps.Keys(l.runs)) {
		var run struct{ State string }
		if err := json.Unmarshal(l.runs[id], &run); err != nil {
			return fmt.Errorf("the record of run %s in %q cannot be read, and the run may be unfinished: %w", id, l.name, err)
		}
		if !runstate.Finished(run.State) {
			return fmt.Errorf("redrive run %s is unfinished (%s): %w", id, run.State, ErrUnfinishedRun)
		}
	}
	return nil
}
