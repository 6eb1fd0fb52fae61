package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/ledgerrecord"
)

// ErrNoLetter reports that there is no letter at a place: it expired, or never existed.
var ErrNoLetter = errors.New("there is no letter")

// Find returns the letter at a place, with its [Letter.State], and the ledger's records about it,
// oldest first. They include broken and revoked entries. A consumer's discard report comes last, if
// it counts (see [Ledger]). A ledger is compacted, so of several entries only the last
// may be left. Find does not use an earlier Read: it reads that partition of the ledger's topic
// itself. Of the dead-letter topic it reads only the letter and the 4,096 offsets before it.
//
// The error wraps [ErrNoLetter] if there is no letter; the records are returned nevertheless. If
// the ledger cannot be read, the letter is returned with the error, and without a state.
func (l *Ledger) Find(ctx context.Context, partition int32, offset int64) (*Letter, []*LedgerRecord, error) {
	at := place{partition, offset}
	fail := func(err error) error { return fmt.Errorf("dlq: find letter %v: %w", position(l.topic, at), err) }
	one := NewLedger(l.topic, l.name, l.opts...)
	notes, ledgerErr := one.about(ctx, at)
	if ledgerErr != nil && ctx.Err() != nil { // a client would begin to connect nevertheless
		return nil, notes, fail(ledgerErr)
	}
	if err := one.inRange(ctx, at); err != nil {
		return nil, notes, fail(err)
	}
	one.whole = true
	for letter, err := range one.Letters(ctx, Filter{Ranges: []Range{At(partition, offset)}}, Cursor{}, WithResolved) {
		if letter != nil && ledgerErr != nil {
			letter.State, err = "", fail(fmt.Errorf("read ledger %q: %w", l.name, ledgerErr))
		}
		return letter, notes, err
	}
	return nil, notes, fail(fmt.Errorf("%w at that offset: it holds a transaction's marker, or its record was aborted or compacted away", ErrNoLetter))
}

// about reads the ledger's records of a letter's partition, and returns those about the letter.
func (l *Ledger) about(ctx context.Context, at place) (notes []*LedgerRecord, err error) {
	cl, err := newScanClient(l.opts, false)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := l.find(ctx, cl); err != nil || l.missing {
		return nil, err
	}
	reports := map[string]*LedgerRecord{} // the last report by run
	s := scan{topic: l.name, cl: cl, narrow: (&Filter{Ranges: []Range{{Partition: at.partition}}}).narrow}
	_, err = s.all(ctx, Cursor{}, func(r *kgo.Record) {
		n := ParseLedgerRecord(r)
		if !l.take(n) || n.Letter != at.offset {
			return
		}
		if run, _, ok := ledgerrecord.DiscardReportOf(n.Run); ok {
			reports[run] = n
		} else {
			notes = append(notes, n)
		}
	})
	l.lost.drop(ctx, cl, l.topic, l.states)
	f := l.states.of(at.partition)
	f.confirmReports()
	for run, n := range reports {
		if n.Entry.State != "" && f.redriven.has(run, at.offset) {
			notes = append(notes, n)
		}
	}
	return notes, err
}

// inRange returns an error if the topic cannot have a letter at the place.
func (l *Ledger) inRange(ctx context.Context, at place) error {
	spans, err := freeze(ctx, l.topic, l.opts)
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
		return fmt.Errorf("%w any more: the partition begins at offset %d; lower ones have expired or were pruned", ErrNoLetter, s.start)
	}
	return nil
}
