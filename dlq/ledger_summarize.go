package dlq

import (
	"context"
	"fmt"
)

// Summarize reads the topic once, from the cursor on, up to where it ends when that
// begins, or where the cursor ends, and counts the letters that the filter selects.
// If the ledger was not read before, it is read first; progress is not told of
// that. It may be nil, and is told how many offsets of how many were passed.
//
// It takes at most two bytes a letter besides those of the ledger, to know
// duplicates, as [Ledger.Letters] says, and is cheapest without a filter.
//
// A summary that comes with an error is of what could be read: nil where nothing
// could, and without the rest of a partition that gives nothing, as [Read] says.
func (l *Ledger) Summarize(ctx context.Context, f Filter, from Cursor, progress func(read, total int64)) (*Summary, error) {
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	t := newSummarizer(l, f)
	s := scan{
		topic: l.topic, opts: l.opts, progress: progress,
		narrow: func(left map[int32]span) {
			f.narrow(left)
			for p, s := range left {
				t.partitions[p] = &summarizedLetter{PartitionCount: PartitionCount{Partition: p}, begin: s.at}
				left[p] = s.back()
			}
		},
	}
	whole, err := s.all(ctx, from, t.add)
	if err != nil {
		err = fmt.Errorf("dlq: summarize %q: %w", l.topic, err)
		if !whole {
			return nil, err
		}
		return t.summary(), err
	}
	return t.summary(), nil
}
