package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
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
	var errs []error
	problem := func(err error) bool {
		errs = append(errs, err)
		return true
	}
	notes := one.about(ctx, at, problem)
	if err := errors.Join(errs...); err != nil {
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

// about takes down what the ledger's topic has about a letter and those before it, and returns what
// it has about the letter.
func (l *Ledger) about(ctx context.Context, at place, problem func(error) bool) (notes []*LedgerRecord) {
	if l.missing {
		return nil
	}
	heard := map[string]*LedgerRecord{} // by run, what consumers said last
	l.entries(ctx, at, problem, func(n *LedgerRecord) {
		if run, ok := n.DiscardReport(); ok {
			heard[run] = n
		} else {
			notes = append(notes, n)
		}
	})
	for run, n := range heard {
		if n.Entry.State != "" && l.reports.redriven.has(run, at) {
			notes = append(notes, n)
		}
	}
	return notes
}

// entries takes down what the ledger's topic has about a letter and those before it of which it may
// be the copy.
func (l *Ledger) entries(ctx context.Context, at place, problem func(error) bool, each func(*LedgerRecord)) {
	first := max(0, at.offset-lookBack)
	near := func(offset int64) bool { return offset <= at.offset && offset >= first }
	s := scan{
		topic: l.name, opts: l.opts, problem: problem,
		narrow: (&Filter{Ranges: []Range{{Partition: at.partition}}}).narrow,
		keep: func(r *kgo.Record) bool {
			key, ok := parseNumber(r.Key)
			if ok && !near(key) { // nearly all
				return true
			}
			n := ParseLedgerRecord(r)
			if !near(n.Letter) || !l.take(n) || n.Letter != at.offset {
				return true
			}
			each(n)
			return true
		},
	}
	s.run(ctx, Cursor{})
	far := map[int64]bool{} // the letters of copies that were imported
	f := l.stateCodeOf(at.partition)
	for offset := range f.sets[stateCode(Duplicate)].All() {
		if letter := f.letterOf(offset); letter < first {
			far[letter] = true
		}
	}
	if len(far) > 0 {
		near = func(offset int64) bool { return far[offset] }
		s.run(ctx, Cursor{})
	}
	l.confirmReports()
}

// inRange says why there can be no letter at a place.
func (l *Ledger) inRange(ctx context.Context, at place) error {
	adm, err := client.NewAdmin(l.opts...)
	if err != nil {
		return err
	}
	defer adm.Close()
	starts, err := offsets(ctx, adm.ListStartOffsets, l.topic)
	if err != nil {
		return fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := offsets(ctx, adm.ListEndOffsets, l.topic)
	if err != nil {
		return fmt.Errorf("list end offsets: %w", err)
	}
	end, ok := ends[at.partition]
	switch {
	case !ok:
		return fmt.Errorf("%w: the topic has %d partitions", ErrNoLetter, len(ends))
	case at.offset < 0 || at.offset >= end:
		return fmt.Errorf("%w: the partition ends at offset %d", ErrNoLetter, end)
	case at.offset < starts[at.partition]:
		return fmt.Errorf("%w any more: the partition begins at offset %d, what is before it has expired or was pruned", ErrNoLetter, starts[at.partition])
	}
	return nil
}
