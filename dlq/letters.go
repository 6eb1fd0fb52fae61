package dlq

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lookBack is how many offsets before its cursor a read of letters begins, to know which of those that follow are duplicates. The
// two are written as far apart as a lane is deep: it has 1,000 copies on their way at most.
const lookBack = 4_096

// Letters yields the letters that the filter selects, from the cursor on, like
// [Read], each with its [Letter.State]. If the ledger was not read before, it is
// read first.
//
// A consumer that crashes before it commits writes a letter once more. Letters of
// the same partition with the same group, original coordinates (topic, its id,
// partition, offset) and redrive id are of one record. One that no entry settles has
// the state [Duplicate] if it is the copy of a letter before it that
//
//   - is open, or
//   - was brought back or discarded, provided that the copy failed before that was
//     written down, or is of the very same failure.
//
// It failed before where both its header and its record's timestamp are earlier than
// both the entry and the entry's record, in whole seconds: so a wrong clock shows a
// letter too many rather than one too few. What fails later, as after its group was
// rewound, is open.
//
// Letters that don't say where they come from, such as those that siding did not
// write, or not by which id, are each their own. Duplicates are known of up to 1,000
// groups, and 65,536 combinations of these with partitions and redrive ids; and of
// what the read has seen: one that begins at a cursor looks 4,096 offsets back, so
// that pages of a list come as fast as the first one.
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
		c := newChoosing(&f, l)
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
	chosen *lineages // with the letters that were chosen as the open ones
	begin  map[int32]int64
}

func newChoosing(f *Filter, l *Ledger) *choosing {
	return &choosing{filter: f, judge: newNamingJudge(l), chosen: newLineages(), begin: map[int32]int64{}}
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
	case c.judge.copy == copyOfOpen:
		if l := c.chosen.of(r.Partition, &c.judge.glance); l == nil || !l.open.Has(c.judge.glance.offset) {
			return nil
		}
	case c.judge.copy == copyOfResolved:
	case state.Settles() || r.Offset < c.begin[r.Partition]:
		return nil
	}
	if c.judge.copy != noCopy && c.judge.behind == 0 {
		return nil
	}
	letter := newLetter(r)
	letter.State = state
	if c.judge.copy != noCopy {
		letter.CopyOf = r.Offset - int64(c.judge.behind)
		return letter
	}
	if !c.filter.Selects(letter) {
		return nil
	}
	if l := c.chosen.of(r.Partition, &c.judge.glance); l != nil {
		l.open.Add(c.judge.glance.offset)
	}
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
	copy     copied // of what it is the copy, where no entry settles it
	behind   uint32 // how far behind that it stands, from a judge that names it; 0 where that is 2³² or more
}

func newJudge(l *Ledger) *judge { return &judge{ledger: l, lineages: newLineages()} }

// newNamingJudge returns one that says of which letter a copy is.
func newNamingJudge(l *Ledger) *judge {
	j := newJudge(l)
	j.lineages.named = true
	return j
}

func (j *judge) state(r *kgo.Record) State {
	state := j.ledger.State(r.Partition, r.Offset)
	if !state.Settles() {
		if j.unsettled(r, r.Timestamp) != noCopy {
			return Duplicate
		}
		return state
	}
	j.copy = noCopy
	j.glance.read(r.Headers)
	if state.resolves() {
		if l := j.lineages.of(r.Partition, &j.glance); l != nil {
			latest := l.resolve(&j.glance, j.ledger.since(r.Partition, r.Offset))
			if j.lineages.named {
				l.resolved.place(&j.glance, r.Offset, latest)
			}
		}
	}
	return state
}

// unsettled takes a letter that no entry settles, and says of what it is the copy. written is when the broker has it from.
func (j *judge) unsettled(r *kgo.Record, written time.Time) copied {
	j.copy, j.behind = noCopy, 0
	j.glance.read(r.Headers)
	l := j.lineages.of(r.Partition, &j.glance)
	if l == nil {
		return noCopy
	}
	j.copy = l.add(&j.glance, written)
	if j.lineages.named {
		j.behind = l.name(j.copy, &j.glance, r.Offset)
	}
	return j.copy
}
