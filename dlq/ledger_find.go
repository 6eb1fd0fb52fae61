package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoLetter says that there is no letter at a place: it expired, or never was.
var ErrNoLetter = errors.New("there is no letter")

// Find returns the letter at a place, with its [Letter.State], and what the
// ledger's topic still has about it, oldest first, broken entries and those that
// were taken back included; behind them what a consumer says of it, if that counts:
// see [Entry.DiscardReport]. A ledger is compacted, so of several entries only the
// last may be left. It reads that partition of the ledger's topic itself, whatever
// was read before, and of the dead-letter topic only the letter and the 4,096
// offsets before it.
//
// The error wraps [ErrNoLetter] where there is none; the notes are returned
// nevertheless.
func (l *Ledger) Find(ctx context.Context, partition int32, offset int64) (*Letter, []*LedgerRecord, error) {
	at := place{partition, offset}
	fail := func(err error) error { return fmt.Errorf("dlq: find letter %v: %w", position(l.topic, at), err) }
	// The ledger of that letter, and of those of which it may be the copy.
	one := NewLedger(l.topic, l.name, l.opts...)
	if err := one.find(ctx); err != nil {
		return nil, nil, fail(err)
	}
	if err := one.inRange(ctx, at); err != nil && !errors.Is(err, ErrNoLetter) {
		return nil, nil, fail(err)
	}
	notes, err := one.about(ctx, at)
	if err != nil {
		return nil, nil, fail(fmt.Errorf("read ledger %q: %w", l.name, err))
	}
	if err := one.inRange(ctx, at); err != nil {
		return nil, notes, fail(err)
	}
	one.whole = true
	for letter, err := range one.Letters(ctx, Filter{Ranges: []Range{At(partition, offset)}}, Cursor{}, WithResolved) {
		return letter, notes, err
	}
	return nil, notes, fail(fmt.Errorf("%w at that offset: it is a transaction's marker, or of one that was aborted, or was compacted away", ErrNoLetter))
}

// about reads the ledger's entries about a letter and those before it, and returns the records
// about the letter.
func (l *Ledger) about(ctx context.Context, at place) (notes []*LedgerRecord, err error) {
	if l.missing {
		return nil, nil
	}
	reports := map[string]*LedgerRecord{} // by run, the last one
	err = l.entries(ctx, at, func(n *LedgerRecord) {
		if run, ok := n.DiscardReport(); ok {
			reports[run] = n
		} else {
			notes = append(notes, n)
		}
	})
	for run, n := range reports {
		if n.Entry.State != "" && l.reports.redriven.has(run, at) {
			notes = append(notes, n)
		}
	}
	return notes, err
}

// entries reads the ledger's entries about a letter and about those before it of which it may be
// the copy; each gets the records about the letter.
func (l *Ledger) entries(ctx context.Context, at place, each func(*LedgerRecord)) error {
	first := max(0, at.offset-lookBack)
	near := func(offset int64) bool { return offset <= at.offset && offset >= first }
	s := scan{topic: l.name, opts: l.opts, narrow: (&Filter{Ranges: []Range{{Partition: at.partition}}}).narrow}
	take := func(r *kgo.Record) {
		if key, ok := parseNumber(r.Key); ok && !near(key) { // nearly all
			return
		}
		if n := ParseLedgerRecord(r); near(n.Letter) && l.take(n) && n.Letter == at.offset {
			each(n)
		}
	}
	if _, err := s.all(ctx, Cursor{}, take); err != nil {
		return err
	}
	far := map[int64]bool{} // the letters of copies that were imported
	f := l.stateCodeOf(at.partition)
	for offset := range f.sets[stateCode(Duplicate)].All() {
		if letter := f.letterOf(offset); letter < first {
			far[letter] = true
		}
	}
	if len(far) > 0 {
		near = func(offset int64) bool { return far[offset] }
		if _, err := s.all(ctx, Cursor{}, take); err != nil {
			return err
		}
	}
	l.confirmReports()
	return nil
}

// inRange says why there can be no letter at a place.
func (l *Ledger) inRange(ctx context.Context, at place) error {
	spans, err := freeze(ctx, l.topic, Cursor{}, l.opts)
	if err != nil {
		return err
	}
	s, ok := spans[at.partition]
	switch {
	case !ok:
		return fmt.Errorf("%w: the topic has %d partitions", ErrNoLetter, len(spans))
	case at.offset < 0 || at.offset >= s.end:
		return fmt.Errorf("%w: the partition ends at offset %d", ErrNoLetter, s.end)
	case at.offset < s.start:
		return fmt.Errorf("%w any more: the partition begins at offset %d, what is before it has expired or was pruned", ErrNoLetter, s.start)
	}
	return nil
}
