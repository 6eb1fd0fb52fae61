package dlq

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Letters yields the letters that the filter selects, from the cursor on, like
// [Read], each with its [Letter.State]; the scope says whether resolved ones are among
// them. If the ledger was not read before, it is read first.
//
// A consumer that crashes before it commits writes a letter once more. Letters of
// the same partition with the same group, original coordinates (topic, its id,
// partition, offset) and redrive id are of one record. A letter without an entry that
// resolves it has the state [Duplicate] if it is the copy of a letter before it that
//
//   - is open, or
//   - was redriven or discarded, provided that the copy failed before that was
//     recorded, or is of the very same failure.
//
// It failed before where both its header and its record's timestamp are earlier than
// both the entry and the entry's record, in whole seconds: so a wrong clock shows a
// letter too many rather than one too few. What fails later, as after its group was
// rewound, is open.
//
// Letters that don't say where they come from, such as those that siding did not
// write, or not by which id, are each their own. Duplicates are known of up to 1,000
// groups, and 65,536 combinations of these with partitions and redrive ids; and of
// what the read has seen: one that begins at a cursor reads from 4,096 offsets before
// it, so that pages of a list come as fast as the first one.
func (l *Ledger) Letters(ctx context.Context, f Filter, from Cursor, scope Scope) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if err := l.ensure(ctx); err != nil {
			yield(nil, err)
			return
		}
		c := newSelector(&f, l, scope)
		s := scan{
			topic: l.topic, opts: l.opts, soon: true, narrow: c.narrow,
			keep: func(r *kgo.Record) bool {
				letter := c.offer(r)
				return letter == nil || yield(letter, nil)
			},
			problem: func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", l.topic, err)) },
		}
		s.run(ctx, from)
	}
}
