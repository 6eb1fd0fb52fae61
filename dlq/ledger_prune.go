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

// Prunable is which letters can be deleted from the beginning of a dead-letter topic's partitions.
type Prunable struct {
	// Until has, for each partition with letters to delete, the offset of the first letter that
	// stays, or the end. It can be the End of a [Cursor], to read the letters that would be
	// deleted.
	Until map[int32]int64
	// Letters is how many letters would be deleted. Open is how many of these are open or have no
	// outcome: zero unless they are selected by age.
	Letters, Open int64
	// NewestOpen is when the newest of the letters that Open counts was written; zero if there are
	// none. A time that is too recent shows that before was made by a wrong clock.
	NewestOpen time.Time
	// Discarded is how many of these are [Discarded] or [Compensated]. [Ledger.Reopen] opens such a
	// letter only while it is in the topic.
	Discarded int64
	// Copies is how many letters that stay are copies of resolved letters without an entry of their
	// own: see [Ledger.Prune].
	Copies int64
	// Pending is how many letters that stay were redriven and have no recorded outcome, or are
	// copies of such letters. All letters after the first of these in a partition stay too.
	Pending int64

	duplicates map[int32]*duplicates // the letters that Copies counts
	stays      map[int32]int64       // offsets of the first letters that have to stay
	before     time.Time
	ledger     *Ledger // that found it, and its taken at that time
	taken      int64
}

// ErrChanged reports that letters have other states than when they were counted. The error around
// it says what changed.
var ErrChanged = errors.New("letters changed since they were counted: count them again")

// Prunable reads the topic once and returns which letters can be deleted: in each partition those
// before the first letter that has to stay. A letter has to stay if no entry of its own resolves
// it, or if it was redriven and has no outcome ([Redriven]). Such a letter may be deleted only if
// it was written earlier than before; with the zero time all of them stay. If the ledger was not
// read yet, it is read first. progress, if not nil, is called with the number of offsets that were
// read, and their total, without those of the ledger.
//
// After an error delete nothing: a partition that was not read to its end may hold open letters.
func (l *Ledger) Prunable(ctx context.Context, before time.Time, progress func(read, total int64)) (*Prunable, error) {
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	p, err := l.findPrunable(ctx, before, nil, progress)
	if err != nil {
		return nil, fmt.Errorf("dlq: find what can be pruned from %q: %w", l.topic, err)
	}
	return p, nil
}

// findPrunable finds what can be pruned. With most it leaves the letters from these offsets on.
func (l *Ledger) findPrunable(ctx context.Context, before time.Time, most map[int32]int64, progress func(read, total int64)) (*Prunable, error) {
	p := &pruning{judge: newJudge(l, true), before: before, parts: map[int32]*prunedPart{}}
	s := scan{
		topic: l.topic, opts: l.opts, progress: progress,
		narrow: func(left map[int32]span) {
			for i, s := range left {
				if most != nil {
					s.end = min(s.end, most[i])
				}
				p.parts[i] = &prunedPart{start: s.start, until: s.end}
			}
		},
	}
	if _, err := s.all(ctx, Cursor{}, p.add); err != nil {
		return nil, err
	}
	found := p.prunable()
	found.before, found.ledger, found.taken = before, l, l.taken
	return found, nil
}

// Prune deletes the letters that [Ledger.Prunable] found, by moving the start of the partitions
// (DeleteRecords). They cannot be restored. Prune first records the letters that Copies counts as
// [Duplicate], because they would count as open once their originals are deleted. If that fails it
// deletes nothing. An error names the partitions in which nothing was deleted. Prune can be called
// again after an error.
//
// Before that Prune reads what the ledger got since. If a letter has to stay by now, or more of the
// letters are open or discarded, it deletes nothing, and the error wraps [ErrChanged]. Only an
// entry that comes while Prune deletes can still be overtaken.
func (l *Ledger) Prune(ctx context.Context, p *Prunable) error {
	if err := l.prune(ctx, p); err != nil {
		return fmt.Errorf("dlq: prune %q: %w", l.topic, err)
	}
	return nil
}

func (l *Ledger) prune(ctx context.Context, p *Prunable) error {
	now, err := l.stillPrunable(ctx, p)
	if err != nil {
		return err
	}
	if err := l.noteDuplicates(ctx, now); err != nil {
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

// stillPrunable reads the ledger again, and the topic if the ledger has got anything. It returns
// what can be pruned by now, of the letters that were found before.
func (l *Ledger) stillPrunable(ctx context.Context, was *Prunable) (*Prunable, error) {
	if err := l.Read(ctx, nil, nil); err != nil && !errors.Is(err, ErrNewerVersion) {
		return nil, err
	}
	if was.ledger == l && was.taken == l.taken {
		return was, nil
	}
	most := was.Until
	if most == nil {
		most = map[int32]int64{}
	}
	now, err := l.findPrunable(ctx, was.before, most, nil)
	if err != nil {
		return nil, err
	}
	for _, i := range slices.Sorted(maps.Keys(was.Until)) {
		if until, ok := now.stays[i]; ok && until < was.Until[i] {
			return nil, fmt.Errorf("nothing was deleted: the letter %v has to stay by now: %w", position(l.topic, place{i, until}), ErrChanged)
		}
	}
	if now.Open > was.Open || now.Discarded > was.Discarded {
		return nil, fmt.Errorf("nothing was deleted: of the letters to delete %d were open or without an outcome and %d discarded, and by now it is %d and %d: %w",
			was.Open, was.Discarded, now.Open, now.Discarded, ErrChanged)
	}
	return now, nil
}

// noteDuplicates records the letters that Copies counts as duplicates.
func (l *Ledger) noteDuplicates(ctx context.Context, p *Prunable) error {
	if p.Copies == 0 {
		return nil
	}
	n, err := newLedgerWriter(ctx, l, Duplicate, nil)
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
