package letterindex

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// selectsAll reports whether a filter without keys, headers and a Match leaves nothing out.
func selectsAll(f *dlq.Filter) bool {
	return len(f.Classes)+len(f.Fingerprints)+len(f.Groups)+len(f.Reasons)+len(f.Dialects)+len(f.States)+len(f.Ranges) == 0 &&
		f.Since.IsZero() && f.Until.IsZero() && f.EnteredSince.IsZero() && f.EnteredUntil.IsZero()
}

// Row is a letter as the index knows it.
type Row struct {
	Partition int32
	Offset    int64
	// FailedAt is when the record last failed, and EnteredAt when the letter was written.
	FailedAt, EnteredAt time.Time
	State               dlq.State
	Kind                Kind
}

// selects returns what a filter selects, without its keys and headers. A Match is asked about the
// row's kind only, so a filter with another one must not come here. The caller holds the lock while
// the result is used.
func (b *Index) selects(f *dlq.Filter) *selection {
	s := &selection{
		kinds: make([]bool, len(b.kinds.all)), states: make([]bool, len(states)), failed: newBounds(f.Since, f.Until),
		entered: newBounds(f.EnteredSince, f.EnteredUntil), ranges: f.Ranges,
	}
	only := dlq.Filter{Classes: f.Classes, Fingerprints: f.Fingerprints, Groups: f.Groups, Reasons: f.Reasons, Dialects: f.Dialects, Match: f.Match}
	for n := range s.kinds {
		s.kinds[n] = only.Selects(b.kinds.all[n].letter())
	}
	for n, state := range states {
		s.states[n] = len(f.States) == 0 || slices.Contains(f.States, state)
	}
	return s
}

// bounds are times in Unix milliseconds; zero means none.
type bounds struct{ since, until int64 }

func newBounds(since, until time.Time) (b bounds) {
	if !since.IsZero() {
		// A row has whole milliseconds: it is not before a time within one if it is after it.
		b.since = since.Add(time.Millisecond - 1).UnixMilli()
	}
	if !until.IsZero() {
		b.until = until.Add(time.Millisecond - 1).UnixMilli()
	}
	return b
}

func (b bounds) has(at int64) bool {
	return (b.since == 0 || at >= b.since) && (b.until == 0 || at < b.until)
}

// At returns the letter at a place, and whether the index has one there.
func (b *Index) At(partition int32, offset int64) (Row, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p := b.partitions[partition]
	if p == nil {
		return Row{}, false
	}
	chunk, i, ok := p.find(offset)
	if !ok {
		return Row{}, false
	}
	r := p.chunks[chunk].row(i)
	return b.row(partition, &r), true
}

func (b *Index) row(partition int32, r *row) Row {
	return Row{partition, r.offset, time.UnixMilli(r.failed), time.UnixMilli(r.entered), states[r.state], b.kinds.all[r.kind].Kind}
}

// Page returns the n letters that came last, of those that a filter selects and that stand before a
// cursor's end; of the whole topic, if the cursor has no end. The filter's Keys, Headers and Match
// do not count. resolved says whether resolved letters and duplicates are among them.
//
// next is the cursor of the next page. Letters that come meanwhile change no page after the first.
// more reports whether there may be a next page.
func (b *Index) Page(f *dlq.Filter, resolved bool, before dlq.Cursor, n int) (rows []Row, next dlq.Cursor, more bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	selected := b.selects(f)
	listed := func(state uint8) bool { return resolved || !states[state].Resolves() }
	passes := func(c *rowChunk) bool { return !c.mayHave(selected, listed) }
	type tail struct {
		id   int32
		row  row // the next candidate
		rest func() (row, bool)
		stop func()
	}
	var tails []*tail
	defer func() {
		for _, t := range tails { // the others are at their end
			t.stop()
		}
	}()
	next = dlq.Cursor{Topic: b.topic, End: map[int32]int64{}}
	for id, p := range b.partitions {
		end, bounded := before.End[id]
		if !bounded {
			end = p.next
			if len(before.End) > 0 {
				continue // it came later
			}
		}
		next.End[id] = end
		rest, stop := iter.Pull(func(yield func(row) bool) {
			for r := range p.before(end, passes) {
				if listed(r.state) && selected.has(id, &r) && !yield(r) {
					return
				}
			}
		})
		if r, ok := rest(); ok {
			tails = append(tails, &tail{id, r, rest, stop})
		}
	}
	for len(tails) > 0 {
		newest := slices.MaxFunc(tails, func(a, b *tail) int {
			return cmp.Or(cmp.Compare(a.row.entered, b.row.entered), cmp.Compare(b.id, a.id))
		})
		if len(rows) == n {
			return rows, next, true
		}
		rows = append(rows, b.row(newest.id, &newest.row))
		next.End[newest.id] = newest.row.offset
		var ok bool
		if newest.row, ok = newest.rest(); !ok {
			tails = slices.DeleteFunc(tails, func(t *tail) bool { return t == newest })
		}
	}
	return rows, next, false
}

// EnteredBy counts by class the letters that were written within a time, but for duplicates.
func (b *Index) EnteredBy(since, until time.Time) map[string]int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	counts := map[string]int64{}
	b.visit(b.selects(&dlq.Filter{EnteredSince: since, EnteredUntil: until}), nil, func(t *tally) {
		if !t.copied {
			counts[b.kinds.all[t.kind].Class] += t.n
		}
	})
	return counts
}

// OpenBefore counts the open letters that were written before each of some times.
func (b *Index) OpenBefore(times ...time.Time) []int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	counts := make([]int64, len(times))
	every := b.selects(&dlq.Filter{})
	splits := func(t *tally) bool {
		return slices.ContainsFunc(times, func(at time.Time) bool { return (bounds{until: at.UnixMilli()}).within(t.entered) == someOf })
	}
	b.visit(every, splits, func(t *tally) {
		if states[t.state].Resolves() {
			return
		}
		for n, at := range times {
			if t.entered.first < at.UnixMilli() {
				counts[n] += t.n
			}
		}
	})
	return counts
}

// LastFailed returns when the last of the letters failed that a filter selects, resolved ones
// included; zero if there is none.
func (b *Index) LastFailed(f *dlq.Filter) time.Time {
	return b.last(f, func(t *tally) int64 { return t.failed.last })
}

// LastEntered returns when the last of these letters was written.
func (b *Index) LastEntered(f *dlq.Filter) time.Time {
	return b.last(f, func(t *tally) int64 { return t.entered.last })
}

func (b *Index) last(f *dlq.Filter, of func(*tally) int64) time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	last := int64(math.MinInt64)
	b.visit(b.selects(f), nil, func(t *tally) { last = max(last, of(t)) })
	if last == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMilli(last)
}
