package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/sidingkafka/siding/internal/client"
)

// Prunable is what can be deleted from the beginning of a dead-letter topic's
// partitions.
type Prunable struct {
	// Until has, for each partition of which something can be deleted, the offset of
	// the first letter that stays, or the end. It fits the End of a [Cursor], to
	// read what would go.
	Until map[int32]int64
	// Letters is how many would go, and Open how many of them are open or have no
	// outcome: only where it was asked for by age.
	Letters, Open int64
	// Copies is how many letters stay that are copies of resolved letters and have no
	// entry: see [Ledger.Prune].
	Copies int64
	// Pending is how many letters stay that were redriven and have no recorded
	// outcome, and copies of such letters. What is behind
	// the first of a partition stays with it.
	Pending int64

	duplicates map[int32]*duplicates // that Copies counts
}

// Prunable reads the topic once and returns what can be deleted. In each partition that is what is
// before the first letter that has to stay: a letter without an entry of its own that resolves it,
// or one that was redriven and has no outcome ([Redriven]), if it was written at before or later.
// With the zero time each such letter stays. A ledger that was not read before is read first.
// progress may be nil; it gets how many offsets of how many were passed, not counting the ledger's.
//
// With an error nothing may be deleted: a partition that was not read to its end may hold open
// letters.
func (l *Ledger) Prunable(ctx context.Context, before time.Time, progress func(read, total int64)) (*Prunable, error) {
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	p := &pruning{judge: newJudge(l, true), before: before, parts: map[int32]*prunedPart{}}
	s := scan{
		topic: l.topic, opts: l.opts, progress: progress,
		narrow: func(left map[int32]span) {
			for i, s := range left {
				p.parts[i] = &prunedPart{start: s.start, until: s.end}
			}
		},
	}
	if _, err := s.all(ctx, Cursor{}, p.add); err != nil {
		return nil, fmt.Errorf("dlq: look what can be pruned of %q: %w", l.topic, err)
	}
	return p.prunable(), nil
}

// Prune deletes what a look at the topic found, by moving the start of its
// partitions (DeleteRecords); what is deleted is lost. Letters that stay and are
// copies of resolved ones are first recorded as [Duplicate], or they
// would count as open once these are gone; nothing is deleted when that does not
// succeed. The next look finds their entries.
// An error names the partitions of which nothing was deleted; to try again does no
// harm.
func (l *Ledger) Prune(ctx context.Context, p *Prunable) error {
	if err := l.prune(ctx, p); err != nil {
		return fmt.Errorf("dlq: prune %q: %w", l.topic, err)
	}
	return nil
}

func (l *Ledger) prune(ctx context.Context, p *Prunable) error {
	if _, err := l.poll(ctx); err != nil {
		return err
	}
	if err := l.noteDuplicates(ctx, p); err != nil {
		return err
	}
	adm, err := client.NewAdmin(l.opts...)
	if err != nil {
		return err
	}
	defer adm.Close()
	until := kadm.Offsets{}
	for i, offset := range p.Until {
		until.AddOffset(l.topic, i, offset, -1)
	}
	if len(until) == 0 {
		return nil
	}
	deleted, err := adm.DeleteRecords(ctx, until)
	if err != nil {
		return fmt.Errorf("delete records: %w", err)
	}
	var errs []error
	for _, i := range slices.Sorted(maps.Keys(p.Until)) {
		if d := deleted[l.topic][i]; d.Err != nil {
			errs = append(errs, fmt.Errorf("delete records of partition %d before offset %d: %w", i, p.Until[i], d.Err))
		}
	}
	return errors.Join(errs...)
}

// noteDuplicates writes them down.
func (l *Ledger) noteDuplicates(ctx context.Context, p *Prunable) error {
	any := false
	for _, set := range p.duplicates {
		any = any || set.Len() > 0
	}
	if !any {
		return nil
	}
	n, err := newLedgerWriter(ctx, l, nil)
	if err != nil {
		return err
	}
	for i, copies := range p.duplicates {
		for offset := range copies.All() {
			letter := place{i, offset - int64(copies.behind.Of(offset))}
			n.write(ctx, place{i, offset}, Entry{TopicID: l.id, State: Duplicate, At: time.Now(), Target: position(l.topic, letter)})
		}
	}
	_, err = n.close(ctx)
	return err
}
