package dlq

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
		if err := one.find(ctx); err != nil {
			fail(err)
			return
		}
		if one.missing {
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
func (l *Ledger) PruneDiscardNotes(ctx context.Context, before time.Time) (deleted int64, err error) {
	cl, err := client.New(writeOpts(l.opts)...)
	if err != nil {
		return 0, fmt.Errorf("dlq: prune discard notes in %q: %w", l.name, err)
	}
	var (
		inFlight sync.WaitGroup
		failed   error // of the first note; a client calls its promises one after another
	)
	written := func(r *kgo.Record, err error) {
		defer inFlight.Done()
		if err == nil {
			deleted++
		} else if failed == nil {
			failed = fmt.Errorf("delete note %s in partition %d: %w", r.Key, r.Partition, ended(ctx, err))
		}
	}
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
			inFlight.Add(1)
			cl.Produce(ctx, r, written)
		}
	}
	_ = cl.Flush(ctx) // an error is that of ctx; what did not come through fails one by one
	cl.Close()
	inFlight.Wait()
	if err := errors.Join(unread, failed); err != nil {
		return deleted, fmt.Errorf("dlq: prune discard notes in %q: %w", l.name, err)
	}
	return deleted, nil
}
