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

// Scope says which of the letters that a filter selects [Ledger.Letters] yields.
type Scope uint8

const (
	// OpenOnly yields the letters that are open: no resolved ones, and no duplicates.
	OpenOnly Scope = iota
	// WithResolved yields every letter, resolved ones and duplicates too.
	WithResolved
	// WithCopies is for a caller that resolves what it reads. It yields the open
	// letters, and their copies behind them: these have the state [Duplicate] and
	// [Letter.CopyOf], and the filter is not asked about them. Copies of letters that
	// are resolved already come too. A copy about which the ledger has no entry becomes
	// open when its letter expires, so the caller writes an entry about it as well.
	//
	// A letter that Filter.Match does not take keeps its copies back: they are all that is
	// left once it has expired. To find all copies, each partition that the filter names
	// is read from its beginning, up to where the cursor ends.
	WithCopies
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

// selector picks the letters of a scope out of those that a read passes.
type selector struct {
	filter *Filter
	scope  Scope
	judge  *judge
	chosen *deduper        // with the letters that were yielded as the open ones; of WithCopies
	begin  map[int32]int64 // letters before it only tell which of those that follow are copies
}

func newSelector(f *Filter, l *Ledger, scope Scope) *selector {
	c := &selector{filter: f, scope: scope, judge: newJudge(l), chosen: newDeduper(), begin: map[int32]int64{}}
	c.judge.deduper.named = scope == WithCopies
	return c
}

// narrow leaves what the filter's ranges name, and what is read before that to know copies. Copies that are yielded may be
// anywhere behind their letter, so their partitions are read whole.
func (c *selector) narrow(left map[int32]span) {
	all := maps.Clone(left)
	c.filter.narrow(left)
	for p, s := range left {
		c.begin[p] = s.at
		if c.scope == WithCopies {
			s = all[p]
			s.at = s.start
		} else {
			s = s.back()
		}
		left[p] = s
	}
}

// offer returns the letter if it is of the scope.
func (c *selector) offer(r *kgo.Record) *Letter {
	state := c.judge.state(r)
	switch {
	case c.scope == WithCopies && c.judge.copy != noCopy:
		return c.copied(r)
	case r.Offset < c.begin[r.Partition], c.scope != WithResolved && state.Resolves():
		return nil
	}
	letter := newLetter(r)
	letter.State = state
	if !c.filter.Selects(letter) {
		return nil
	}
	if c.scope == WithCopies {
		if l := c.chosen.of(r.Partition, &c.judge.glance); l != nil {
			l.open.Add(c.judge.glance.offset)
		}
	}
	return letter
}

// copied returns a copy whose letter was yielded, or is resolved.
func (c *selector) copied(r *kgo.Record) *Letter {
	if c.judge.copy == copyOfOpen {
		if l := c.chosen.of(r.Partition, &c.judge.glance); l == nil || !l.open.Has(c.judge.glance.offset) {
			return nil
		}
	}
	if c.judge.behind == 0 {
		return nil
	}
	letter := newLetter(r)
	letter.State, letter.CopyOf = Duplicate, r.Offset-int64(c.judge.behind)
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
	ledger  *Ledger
	deduper *deduper
	glance  headerView // at the letter that was shown last
	copy    copied     // of what it is the copy, where no entry settles it
	behind  uint32     // how far behind that it stands, from a judge that names it; 0 where that is 2³² or more
}

func newJudge(l *Ledger) *judge { return &judge{ledger: l, deduper: newDeduper()} }

// newNamingJudge returns one that says of which letter a copy is.
func newNamingJudge(l *Ledger) *judge {
	j := newJudge(l)
	j.deduper.named = true
	return j
}

func (j *judge) state(r *kgo.Record) State {
	state := j.ledger.State(r.Partition, r.Offset)
	if !state.Resolves() {
		if j.unresolved(r, r.Timestamp) != noCopy {
			return Duplicate
		}
		return state
	}
	j.copy = noCopy
	j.glance.read(r.Headers)
	if state.resolves() {
		if l := j.deduper.of(r.Partition, &j.glance); l != nil {
			latest := l.resolve(&j.glance, j.ledger.since(r.Partition, r.Offset))
			if j.deduper.named {
				l.resolved.place(&j.glance, r.Offset, latest)
			}
		}
	}
	return state
}

// unresolved takes a letter that no entry settles, and says of what it is the copy. written is when the broker has it from.
func (j *judge) unresolved(r *kgo.Record, written time.Time) copied {
	j.copy, j.behind = noCopy, 0
	j.glance.read(r.Headers)
	l := j.deduper.of(r.Partition, &j.glance)
	if l == nil {
		return noCopy
	}
	j.copy = l.add(&j.glance, written)
	if j.deduper.named {
		j.behind = l.name(j.copy, &j.glance, r.Offset)
	}
	return j.copy
}
