package dlq

import (
	"context"
	"fmt"
	"iter"
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lookBack is how many offsets before its cursor a read of letters begins, to know which of those that follow are duplicates. The
// two are written as far apart as a lane is deep: it has 1,000 copies on their way at most.
const lookBack = 4_096

// Letters yields the letters that the filter selects, from the cursor on, like
// [Read], each with its [Letter.State]. If the ledger was not read before, it is
// read first.
//
// Letters of the same partition with the same group, original coordinates and
// redrive id are one: all but the first have the state [Duplicate], unless the
// ledger says something else of them. Letters that don't say where they come from,
// such as those that siding did not write, are each their own. Duplicates are
// known of up to 1,000 groups, and 65,536 combinations of these with partitions and
// redrive ids; and of what the read has seen: one that begins at a cursor looks
// 4,096 offsets back, so that pages of a list come as fast as the first one.
func (l *Ledger) Letters(ctx context.Context, f Filter, from Cursor) iter.Seq2[*Letter, error] {
	return l.letters(ctx, f, from, func(State) bool { return true })
}

// Open is [Ledger.Letters] without those that are settled, and without duplicates.
func (l *Ledger) Open(ctx context.Context, f Filter, from Cursor) iter.Seq2[*Letter, error] {
	return l.letters(ctx, f, from, func(s State) bool { return !s.Settles() })
}

func (l *Ledger) letters(ctx context.Context, f Filter, from Cursor, wanted func(State) bool) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if err := l.ensure(ctx); err != nil {
			yield(nil, err)
			return
		}
		j := newJudge(l)
		begin := map[int32]int64{}
		s := scan{
			topic: l.topic, opts: l.opts, soon: true,
			narrow: func(left map[int32]span) {
				f.narrow(left)
				for p, s := range left {
					begin[p], left[p] = s.at, s.back()
				}
			},
			keep: func(r *kgo.Record) bool {
				state := j.state(r)
				if r.Offset < begin[r.Partition] || !wanted(state) {
					return true
				}
				letter := newLetter(r)
				letter.State = state
				return !f.Selects(letter) || yield(letter, nil)
			},
			problem: func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", l.topic, err)) },
		}
		s.run(ctx, from)
	}
}

// Chosen is [Ledger.Open] for who settles what it yields: behind the letters come their copies, with the
// state [Duplicate], whatever the filter says of these, and those of letters that are settled already.
// Where the ledger does not say of a copy what it is, it is open once its letter has expired: write that
// down with the rest. To know all of them it reads each partition that the filter names from its
// beginning, up to where the cursor ends.
//
// Of a letter that Filter.Match does not take, copies are not yielded: they are what is left when it has
// expired.
func (l *Ledger) Chosen(ctx context.Context, f Filter, from Cursor) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		if err := l.ensure(ctx); err != nil {
			yield(nil, err)
			return
		}
		c := choosing{filter: &f, judge: newJudge(l), gone: newLineages(), begin: map[int32]int64{}}
		s := scan{
			topic: l.topic, opts: l.opts, soon: true, narrow: c.narrow,
			keep: func(r *kgo.Record) bool {
				letter := c.look(r)
				return letter == nil || yield(letter, nil)
			},
			problem: func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", l.topic, err)) },
		}
		s.run(ctx, from)
	}
}

// choosing looks for letters to settle.
type choosing struct {
	filter *Filter
	judge  *judge
	gone   *lineages // of letters that are settled, or about to be
	begin  map[int32]int64
}

// narrow leaves whole partitions: a letter may have its copy anywhere behind it.
func (c *choosing) narrow(left map[int32]span) {
	named := maps.Clone(left)
	c.filter.narrow(named)
	for p, s := range left {
		if _, ok := named[p]; !ok {
			delete(left, p)
			continue
		}
		c.begin[p], s.at = s.at, s.start
		left[p] = s
	}
}

// look returns the letter if it is one of those that are looked for.
func (c *choosing) look(r *kgo.Record) *Letter {
	state := c.judge.state(r)
	switch {
	case c.judge.unsaid:
		if !c.gone.has(r.Partition, &c.judge.glance) {
			return nil
		}
	case state.Settles():
		c.gone.duplicate(r.Partition, &c.judge.glance)
		return nil
	case r.Offset < c.begin[r.Partition]:
		return nil
	}
	letter := newLetter(r)
	letter.State = state
	if c.judge.unsaid {
		return letter
	}
	if !c.filter.Selects(letter) {
		return nil
	}
	c.gone.duplicate(r.Partition, &c.judge.glance)
	return letter
}

// back is the span with what is looked at before it.
func (s span) back() span {
	if s.at < s.end {
		s.at = max(s.start, s.at-lookBack)
	}
	return s
}

// judge says what became of letters that are shown to it in the order of their partitions.
type judge struct {
	ledger   *Ledger
	lineages *lineages
	glance   glance // at the letter that was shown last
	unsaid   bool   // that it is a duplicate is not said by the ledger
}

func newJudge(l *Ledger) *judge { return &judge{ledger: l, lineages: newLineages()} }

func (j *judge) state(r *kgo.Record) State {
	j.glance.read(r.Headers)
	// Also of one that is settled: a copy of it is not open.
	duplicate := j.lineages.duplicate(r.Partition, &j.glance)
	state := j.ledger.State(r.Partition, r.Offset)
	if j.unsaid = duplicate && !state.Settles(); j.unsaid {
		return Duplicate
	}
	return state
}
