package dlq

import (
	"context"
	"iter"
)

// Letters yields the letters that the filter selects, from the cursor on, like [Read], each with
// its [Letter.State]. The scope decides whether resolved letters are among them. If the ledger was
// not read yet, it is read first, unless the cursor has ends and the states of all its partitions
// are known: see [Ledger.Known].
//
// A consumer that crashes before it commits writes a letter once more. Two letters of a partition
// are of one record if they have the same group, original coordinates (topic, its id, partition,
// offset) and redrive id. A letter that no entry resolves has the state [Duplicate] if it is the
// copy of an earlier letter that
//
//   - is open, or
//   - was redriven or discarded, provided that the copy failed before that was recorded, or is of
//     the very same failure.
//
// The copy failed before if both its header and its record's timestamp are earlier than both the
// entry and the entry's record, in whole seconds. So a wrong clock shows a letter too many rather
// than one too few. A later failure is open, for example after its group was rewound.
//
// A letter without an original position, or without the topic id of it, is never a duplicate;
// letters that siding did not write have none. Duplicates are recognized for up to 1,000 groups,
// and up to 65,536 combinations of these with partitions and redrive ids. The original letter must
// be among the letters that were read: a read that begins at a cursor also reads the 4,096 offsets
// before it. So each page of a list comes as fast as the first.
func (l *Ledger) Letters(ctx context.Context, f Filter, from Cursor, scope Scope) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if !l.covers(&from) {
			if err := l.ensure(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		c := newSelector(&f, l, scope)
		s := scan{topic: l.topic, opts: l.opts, soon: true, narrow: c.narrow}
		yieldFrom(ctx, s, from, c.selected)(yield)
	}
}

// covers reports whether a cursor has ends, and the states of all its partitions are known.
func (l *Ledger) covers(from *Cursor) bool {
	for p := range from.End {
		if !l.Known(p) {
			return false
		}
	}
	return len(from.End) > 0
}
