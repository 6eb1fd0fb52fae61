package dlq

import (
	"context"
	"fmt"
	"time"
)

// PrunableBy reads the topic and returns which letters can be deleted so that it keeps no more than
// a retention says, as of a time. It is [Ledger.Prunable] but for that: resolved letters stay too
// while they are within both limits, and open ones go only with [Retention.Open]. With a MaxCount
// that the topic exceeds, it reads the topic twice, and takes 24 bytes of memory for a letter
// beyond MaxCount.
func (l *Ledger) PrunableBy(ctx context.Context, r Retention, now time.Time, progress func(read, total int64)) (*Prunable, error) {
	fail := func(err error) (*Prunable, error) {
		return nil, fmt.Errorf("dlq: find what retention takes from %q: %w", l.topic, err)
	}
	if err := r.check(); err != nil {
		return fail(err)
	}
	if err := l.ensure(ctx); err != nil {
		return nil, err
	}
	frozen, err := Freeze(ctx, l.topic, l.opts...)
	if err != nil {
		return fail(err)
	}
	end, err := l.endOf(ctx, r, now, frozen)
	if err != nil {
		return fail(err)
	}
	is := limits{resolved: &end}
	if r.Open {
		is.open = end
	}
	p, err := l.findPrunable(ctx, is, frozen, nil, progress)
	if err != nil {
		return fail(err)
	}
	return p, nil
}

// endOf returns where the letters end that are beyond a retention: the later of both limits.
func (l *Ledger) endOf(ctx context.Context, r Retention, now time.Time, frozen Cursor) (end mark, err error) {
	if r.MaxAge > 0 {
		end.at = now.Add(-r.MaxAge)
	}
	offsets := int64(0) // at least as many as letters
	for p, until := range frozen.End {
		offsets += until - frozen.At[p]
	}
	if r.MaxCount == 0 || offsets <= r.MaxCount {
		return end, nil
	}
	oldest := oldestLetters{most: offsets - r.MaxCount}
	s := scan{topic: l.topic, opts: l.opts}
	if _, err := s.all(ctx, frozen, oldest.add); err != nil {
		return end, err
	}
	if by := oldest.until(r.MaxCount); end.compare(by) < 0 {
		end = by
	}
	return end, nil
}
