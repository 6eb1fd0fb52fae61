package dlq

import (
	"context"
	"fmt"
	"time"
)

// Summarize reads the topic once and counts the letters that the filter selects. It reads from the
// cursor to the cursor's end, or to the end that the topic has when the reading begins. If the
// ledger was not read yet, it is read first. progress, if not nil, is called with the number of
// offsets that were read, and their total, without those of the ledger.
//
// To recognize duplicates (see [Ledger.Letters]) it takes at most two bytes a letter, besides those
// of the ledger. It is fastest without a filter.
//
// With an error, the summary lacks the rest of each partition that stalled, as in [Read]. It is nil
// if the read did not come to its end otherwise.
func (l *Ledger) Summarize(ctx context.Context, f Filter, from Cursor, progress func(read, total int64)) (*Summary, error) {
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	return l.summarize(ctx, newSummarizer(l, f), from, progress)
}

// SummaryBy is what [Ledger.SummarizeBy] also counts the open letters by.
type SummaryBy struct {
	// Times is the length of the times of [Summary.Times], a second at least; 0 for none.
	Times time.Duration
	// Value adds a letter to the counts of [Summary.Values]; nil for none. Each letter is parsed
	// for it, which takes ten times as long as counting it.
	Value func(*Letter, *ValueCounts)
}

// SummarizeBy is [Ledger.Summarize], and also counts the open letters by the time of their failure
// and by a value.
func (l *Ledger) SummarizeBy(ctx context.Context, f Filter, from Cursor, by SummaryBy, progress func(read, total int64)) (*Summary, error) {
	if by.Times != 0 && by.Times < time.Second {
		return nil, fmt.Errorf("dlq: summarize %q: %v is shorter than a second, the least to count by", l.topic, by.Times)
	}
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	t := newSummarizer(l, f)
	t.by, t.times = by.Times.Milliseconds(), newBoundedTable[TimeCount](maxTimes)
	t.value = by.Value
	return l.summarize(ctx, t, from, progress)
}

func (l *Ledger) summarize(ctx context.Context, t *summarizer, from Cursor, progress func(read, total int64)) (*Summary, error) {
	s := scan{topic: l.topic, opts: l.opts, progress: progress, narrow: t.narrow}
	whole, err := s.all(ctx, from, t.add)
	return t.ended(whole, err)
}
