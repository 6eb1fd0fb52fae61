package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/ledgerrecord"
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
	// Held is how many letters stay although a [Retention] takes letters of their age: they are
	// open, have no outcome, or stand behind a letter that stays. Without a Retention it is how
	// many letters stay.
	Held int64

	duplicates map[int32]*duplicates // the letters that Copies counts, until they are recorded
	noted      int64                 // those that were recorded
	stays      map[int32]int64       // offsets of the first letters that have to stay
	up         limits
	ledger     *Ledger // that found it, and its taken at that time
	taken      int64
}

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
	p, err := l.findPrunable(ctx, limits{open: mark{at: before}}, Cursor{}, nil, progress)
	if err != nil {
		return nil, fmt.Errorf("dlq: find what can be pruned from %q: %w", l.topic, err)
	}
	return p, nil
}

// findPrunable finds what of a cursor's letters can be pruned. With most it leaves the letters from
// these offsets on.
func (l *Ledger) findPrunable(ctx context.Context, up limits, from Cursor, most map[int32]int64, progress func(read, total int64)) (*Prunable, error) {
	p := &pruning{judge: newJudge(l, true), up: up, parts: map[int32]*prunedPart{}}
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
	if _, err := s.all(ctx, from, p.add); err != nil {
		return nil, err
	}
	found := p.prunable()
	found.up, found.ledger, found.taken = up, l, l.taken
	return found, nil
}

// hasCopies reports whether there are copies that are not recorded yet.
func (p *Prunable) hasCopies() bool {
	for _, copies := range p.duplicates {
		if copies.Len() > 0 {
			return true
		}
	}
	return false
}

// recordLimit is how long it may take to record the end of a pruning.
const recordLimit = 10 * time.Second

// deleteLimit is how long brokers may take to delete letters. A client that asks again later would
// act on what it knew before.
const deleteLimit = 30 * time.Second

// PruneOptions are the options of [Ledger.Prune]. They are for the ledger, and may all be empty.
type PruneOptions struct {
	// By is who deletes, and Why the reason. Each has 4,096 bytes at most.
	By, Why string
	// Archive is where the letters were written before.
	Archive string
}

// Prune deletes the letters that [Ledger.Prunable] or [Ledger.PrunableBy] found, by moving the
// start of the partitions (DeleteRecords). They cannot be restored. Afterwards p has what was
// deleted: without the letters that were gone before. Prune first records the letters that Copies
// counts as [Duplicate], because they would count as open once their originals are deleted. Then it
// announces by a record in the ledger what it is about to delete. If one of these fails it deletes
// nothing. At the end it records that the letters are deleted. Without a ledger's topic nothing is
// announced.
//
// An error of the brokers names the partitions in which letters may have been left. They may still
// be deleted: a broker that was silent carries out what it has received when it goes on. Prune can
// be called again after an error.
//
// Before the announcement, and again after it, Prune reads what the ledger got since: a process can
// be suspended in between. It fails with [ErrUnfinishedRun] if a redrive run is unfinished, which
// would count the letters as expired. If a letter has to stay by now, or more of the letters are
// open or discarded, it deletes nothing, and the error wraps [ErrChanged]. If the topic was
// recreated it deletes nothing, either. Only what comes while the brokers delete can still be
// overtaken.
func (l *Ledger) Prune(ctx context.Context, p *Prunable, o PruneOptions) error {
	if err := l.prune(ctx, p, o); err != nil {
		return fmt.Errorf("dlq: prune %q: %w", l.topic, err)
	}
	return nil
}

// ErrKept is wrapped by errors of [Ledger.Prune] after which all letters stay: brokers were not
// asked to delete any, or refused to delete each. Its text is not part of theirs.
var ErrKept = errors.New("all letters stay")

// keptError is an error that wraps [ErrKept], and has the text of its cause alone.
type keptError struct{ error }

func (e keptError) Unwrap() []error { return []error{e.error, ErrKept} }

func kept(err error) error {
	if err == nil {
		return nil
	}
	return keptError{err}
}

func (l *Ledger) prune(ctx context.Context, p *Prunable, o PruneOptions) error {
	if n := max(len(o.By), len(o.Why), len(o.Archive)); n > maxReason {
		return kept(fmt.Errorf("nothing was deleted: one of the options By, Why and Archive has %d bytes, and %d are the most", n, maxReason))
	}
	if err := l.judgeAgain(ctx, p); err != nil || p.Letters == 0 {
		return kept(err)
	}
	at := time.Now()
	pruned := &ledgerrecord.Prune{ID: ledgerrecord.NewPruneID(at), TopicID: l.id, At: at, By: o.By, Why: o.Why, Archive: o.Archive}
	pruned.Until, pruned.Letters, pruned.Open, pruned.Discarded = p.Until, p.Letters, p.Open, p.Discarded
	record := l.recordPrune
	if l.missing {
		record = func(context.Context, *ledgerrecord.Prune) error { return nil }
	}
	if err := record(ctx, pruned); err != nil {
		return kept(fmt.Errorf("nothing was deleted: %w", err))
	}
	if !l.missing {
		p.taken++ // the announcement changes nothing
	}
	err := kept(l.judgeAgain(ctx, p))
	if err == nil {
		pruned.Until, pruned.Letters, pruned.Open, pruned.Discarded = p.Until, p.Letters, p.Open, p.Discarded
		err = l.deleteUntil(ctx, p.Until)
	}
	if p.Letters == 0 { // another deleted them meanwhile, and its record names their archive
		pruned.Archive = ""
	}
	if err != nil {
		pruned.Error = err.Error()[:min(len(err.Error()), maxReason)]
	} else {
		pruned.Deleted = time.Now()
	}
	// The end is recorded even if ctx ended meanwhile: an operator may look for the letters.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	if failed := record(ending, pruned); failed != nil && err == nil {
		return fmt.Errorf("%d letters were deleted, but the ledger says only that they were to be: %w", pruned.Letters, failed)
	}
	return err
}

// deleteUntil deletes the letters before these offsets.
func (l *Ledger) deleteUntil(ctx context.Context, offsets map[int32]int64) error {
	adm, err := client.NewAdmin(l.opts...)
	if err != nil {
		return err
	}
	defer adm.Close()
	until := kadm.Offsets{}
	for i, offset := range offsets {
		until.AddOffset(l.topic, i, offset, -1)
	}
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	deleted, err := adm.DeleteRecords(ctx, until)
	if err != nil {
		return fmt.Errorf("delete records: %w", err)
	}
	var errs []error
	refused := true
	for _, i := range slices.Sorted(maps.Keys(offsets)) {
		d := deleted[l.topic][i]
		if d.Err != nil {
			errs = append(errs, fmt.Errorf("delete records of partition %d before offset %d: %w", i, offsets[i], d.Err))
		}
		refused = refused && errors.Is(d.Err, kerr.TopicAuthorizationFailed)
	}
	if err := errors.Join(errs...); !refused {
		return err
	}
	return kept(errors.Join(errs...))
}

// mostJudged is how often in a row letters are judged again before they are deleted.
const mostJudged = 5

// judgeAgain makes p what can be pruned by now of its letters, and records the duplicates. When it
// returns, the ledger has not changed since they were judged.
func (l *Ledger) judgeAgain(ctx context.Context, p *Prunable) error {
	for range mostJudged {
		now, err := l.stillPrunable(ctx, p)
		if err != nil {
			return err
		}
		if err := l.idle(); err != nil {
			return fmt.Errorf("nothing was deleted: %w", err)
		}
		if now == p && !p.hasCopies() {
			p.Copies = p.noted
			return nil
		}
		now.noted = p.noted
		*p = *now
		if err := l.recordDuplicates(ctx, p); err != nil {
			return err
		}
	}
	return fmt.Errorf("nothing was deleted: entries come to %s faster than the letters are judged: %w", l.name, ErrChanged)
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
	now, err := l.findPrunable(ctx, was.up, Cursor{}, most, nil)
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

// recordDuplicates writes entries for the letters that Copies counts as duplicates.
func (l *Ledger) recordDuplicates(ctx context.Context, p *Prunable) error {
	if !p.hasCopies() {
		return nil
	}
	n, err := newLedgerWriter(ctx, l, Duplicate, nil)
	if err != nil {
		return err
	}
	for i, copies := range p.duplicates {
		for offset := range copies.All() {
			letter := place{i, offset - int64(copies.behind.Of(offset))}
			n.write(ctx, place{i, offset}, Entry{TopicID: l.id, Epochs: copies.epochs, State: Duplicate, At: time.Now(), Target: position(l.topic, letter)})
		}
	}
	if _, err = n.close(ctx); err == nil {
		p.noted, p.duplicates = p.noted+p.Copies, nil
	}
	return err
}
