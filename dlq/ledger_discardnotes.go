package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
	"github.com/sidingkafka/siding/internal/offsetset"
)

// DiscardNotes yields the consumers' notes of discarded records, in the order in which each
// partition of the ledger has them, up to the end that the ledger has when the reading begins. It
// yields an [*EntryError] for each note that cannot be read, and goes on. After any other error
// notes may be missing. Without a ledger there are none.
//
// A record that was discarded again has its last note only. It does not use an earlier Read. It
// reads the ledger twice, and takes some two bytes of memory for a note: less where the discarded
// records stand close together, and more for a note that the ledger has several times.
func (l *Ledger) DiscardNotes(ctx context.Context) iter.Seq2[*DiscardNote, error] {
	return func(yield func(*DiscardNote, error) bool) {
		fail := func(err error) { yield(nil, fmt.Errorf("dlq: read discard notes in %q: %w", l.name, err)) }
		one := NewLedger(l.topic, l.name, l.opts...)
		if _, ledger, err := one.poll(ctx); err != nil || ledger.Err != nil {
			if err != nil {
				fail(err)
			}
			return
		}
		frozen, err := Freeze(ctx, l.name, l.opts...)
		if err != nil {
			fail(err)
			return
		}
		last := notesByKey{}
		s := scan{topic: l.name, opts: l.opts}
		if _, err := s.all(ctx, frozen, last.take); err != nil {
			fail(err)
			return
		}
		stopped := false
		s = scan{
			topic: l.name, opts: l.opts,
			keep: func(r *kgo.Record) bool {
				if !last.remove(r) {
					return true
				}
				n, err := readDiscardNote(r)
				stopped = !yield(n, err)
				return !stopped
			},
			problem: func(err error) bool {
				if !stopped {
					fail(err)
				}
				return false
			},
		}
		s.run(ctx, frozen)
	}
}

// notesByKey are the notes whose last record has a value, by partition, group and topic.
type notesByKey map[noteKey]*noteOffsets

type noteKey struct {
	partition  int32
	groupTopic string
}

// noteOffsets are the offsets of notes.
type noteOffsets struct {
	offsetset.Set
	last map[int64]int64 // the ledger's offset of the last record, for notes with several records
}

func (b notesByKey) take(r *kgo.Record) {
	groupTopic, offset, ok := discardNoteOf(r.Key)
	if !ok {
		return
	}
	key := noteKey{r.Partition, groupTopic}
	notes := b[key]
	if notes == nil {
		notes = &noteOffsets{last: map[int64]int64{}}
		b[key] = notes
	}
	_, several := notes.last[offset]
	if r.Value != nil {
		several = !notes.Add(offset) || several
	} else {
		several = notes.Remove(offset) || several
	}
	if several {
		notes.last[offset] = r.Offset
	}
}

// remove removes the note of a record that is the last with its key, and reports whether it was
// there. An earlier record may be of another discard: the source was recreated, or read again.
// Compaction keeps the last one too.
func (b notesByKey) remove(r *kgo.Record) bool {
	groupTopic, offset, ok := discardNoteOf(r.Key)
	notes := b[noteKey{r.Partition, groupTopic}]
	if !ok || r.Value == nil || notes == nil {
		return false
	}
	if last, several := notes.last[offset]; several && last != r.Offset {
		return false
	}
	return notes.Has(offset) && notes.Remove(offset)
}

// PruneDiscardNotes deletes the notes of records that were discarded before a time, by records
// without a value: compaction removes both. It returns how many notes it deleted. An error may
// leave notes, and PruneDiscardNotes can be called again. Notes that cannot be read stay, and are
// no error.
//
// A consumer may discard a record again while PruneDiscardNotes deletes the record's old note, for
// example after its group was rewound. If the new note stands before the deletion, it is deleted
// too. So PruneDiscardNotes reads what the ledger got meanwhile, and writes such notes again. They
// are lost only if it ends before that: the error says so.
func (l *Ledger) PruneDiscardNotes(ctx context.Context, before time.Time) (deleted int64, err error) {
	fail := func(err error) (int64, error) {
		return deleted, fmt.Errorf("dlq: prune discard notes in %q: %w", l.name, err)
	}
	if _, ledger, err := l.poll(ctx); err != nil {
		return fail(err)
	} else if ledger.Err != nil {
		return 0, nil // without a ledger there are no notes
	}
	read, err := Freeze(ctx, l.name, l.opts...)
	if err != nil {
		return fail(err)
	}
	w, err := newNoteWriter(ctx, l.opts)
	if err != nil {
		return fail(err)
	}
	defer w.cl.Close()
	var unread error
	for n, err := range l.DiscardNotes(ctx) {
		if _, broken := errors.AsType[*EntryError](err); broken {
			continue
		}
		if err != nil {
			unread = err
			break
		}
		if n.At.Before(before) {
			r := n.Record(l.name)
			r.Value = nil
			w.write("delete", r)
		}
	}
	deleted, failed := w.flush()
	var overtaken error
	if deleted > 0 {
		overtaken = l.restoreNotes(ctx, w, read)
	}
	if err := errors.Join(unread, failed, overtaken); err != nil {
		return fail(err)
	}
	return deleted, nil
}

// restoreNotes writes the notes again that were deleted although they came after a cursor's end.
func (l *Ledger) restoreNotes(ctx context.Context, w *noteWriter, read Cursor) error {
	fail := func(err error) error {
		return fmt.Errorf("notes that were written meanwhile may be deleted too: %w", err)
	}
	now, err := Freeze(ctx, l.name, l.opts...)
	if err != nil {
		return fail(err)
	}
	came, lost := map[string]*kgo.Record{}, map[string]*kgo.Record{}
	s := scan{topic: l.name, opts: l.opts}
	_, err = s.all(ctx, Cursor{Topic: l.name, At: read.End, End: now.End}, func(r *kgo.Record) {
		switch at := strconv.Itoa(int(r.Partition)) + "/" + string(r.Key); {
		case !isDiscardNote(r):
		case r.Value != nil:
			came[at] = &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: slices.Clone(r.Key), Value: slices.Clone(r.Value)}
			delete(lost, at)
		case came[at] != nil:
			lost[at] = came[at]
		}
	})
	for _, r := range lost {
		w.write("restore", r)
	}
	if _, failed := w.flush(); err != nil || failed != nil {
		return fail(errors.Join(err, failed))
	}
	return nil
}

// noteWriter writes and deletes notes.
type noteWriter struct {
	ctx      context.Context
	cl       *kgo.Client
	inFlight sync.WaitGroup
	// until flush returns they belong to promises, which a client calls one after another
	written int64
	failed  error // of the first note
}

func newNoteWriter(ctx context.Context, opts []kgo.Opt) (*noteWriter, error) {
	cl, err := client.New(writeOpts(opts)...)
	return &noteWriter{ctx: ctx, cl: cl}, err
}

func (w *noteWriter) write(what string, r *kgo.Record) {
	w.inFlight.Add(1)
	w.cl.Produce(w.ctx, r, func(r *kgo.Record, err error) {
		defer w.inFlight.Done()
		if err == nil {
			w.written++
		} else if w.failed == nil {
			w.failed = fmt.Errorf("%s note %s in partition %d: %w", what, r.Key, r.Partition, ended(w.ctx, err))
		}
	})
}

// flush waits until all is written, and returns what was written since the last flush.
func (w *noteWriter) flush() (written int64, err error) {
	_ = w.cl.Flush(w.ctx) // an error is that of ctx; what did not come through fails one by one
	w.inFlight.Wait()
	written, err = w.written, w.failed
	w.written, w.failed = 0, nil
	return written, err
}
