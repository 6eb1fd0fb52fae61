package book

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Decides reports whether a book can tell which letters a filter selects. Otherwise the letters
// have to be read: their keys, headers or values decide.
func Decides(f *dlq.Filter) bool { return len(f.Keys)+len(f.Headers) == 0 && f.Match == nil }

// selectsAll reports whether a filter, for which Decides holds, leaves nothing out.
func selectsAll(f *dlq.Filter) bool {
	return len(f.Classes)+len(f.Fingerprints)+len(f.Groups)+len(f.Reasons)+len(f.States)+len(f.Ranges) == 0 &&
		f.Since.IsZero() && f.Until.IsZero() && f.EnteredSince.IsZero() && f.EnteredUntil.IsZero()
}

// Row is a letter as the book knows it.
type Row struct {
	Partition int32
	Offset    int64
	// FailedAt is when the record last failed, and EnteredAt when the letter was written.
	FailedAt, EnteredAt time.Time
	State               dlq.State
	Kind                Kind
}

// selector returns a function that reports whether a filter selects a row, without its keys and
// headers. A Match is asked about the row's kind only, so a filter with another one must not come
// here. The caller holds the lock while it is used.
func (b *Book) selector(f *dlq.Filter) func(partition int32, r *row) bool {
	kinds := make([]bool, len(b.kinds.all))
	only := dlq.Filter{Classes: f.Classes, Fingerprints: f.Fingerprints, Groups: f.Groups, Reasons: f.Reasons, Match: f.Match}
	for n := range kinds {
		kinds[n] = only.Selects(b.kinds.all[n].letter())
	}
	wanted := make([]bool, len(states))
	for n, s := range states {
		wanted[n] = len(f.States) == 0 || slices.Contains(f.States, s)
	}
	failed, entered := newBounds(f.Since, f.Until), newBounds(f.EnteredSince, f.EnteredUntil)
	return func(partition int32, r *row) bool {
		return kinds[r.kind] && wanted[r.state] && failed.has(r.failed) && entered.has(r.entered) &&
			(len(f.Ranges) == 0 || slices.ContainsFunc(f.Ranges, func(s dlq.Range) bool {
				return s.Partition == partition && s.From <= r.offset && (r.offset < s.Until || s.Until == 0)
			}))
	}
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

// At returns the letter at a place, and whether the book has one there.
func (b *Book) At(partition int32, offset int64) (Row, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p := b.partitions[partition]
	if p == nil {
		return Row{}, false
	}
	i, ok := p.find(offset)
	if !ok {
		return Row{}, false
	}
	return b.row(partition, &p.rows[i]), true
}

func (b *Book) row(partition int32, r *row) Row {
	return Row{partition, r.offset, time.UnixMilli(r.failed), time.UnixMilli(r.entered), states[r.state], b.kinds.all[r.kind].Kind}
}

// Page returns the n letters that came last, of those that a filter selects and that stand before a
// cursor's end; of the whole topic, if the cursor has no end. Only the filter's fields for which
// [Decides] holds count. resolved tells whether resolved letters and duplicates are among them.
//
// next is the cursor of the next page. Letters that come meanwhile change no page after the first.
// more reports whether there may be a next page.
func (b *Book) Page(f *dlq.Filter, resolved bool, before dlq.Cursor, n int) (rows []Row, next dlq.Cursor, more bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	selects := b.selector(f)
	type tail struct {
		id   int32
		rows []row // the last one is the next candidate
	}
	var tails []*tail
	next = dlq.Cursor{Topic: b.topic, End: map[int32]int64{}}
	last := func(t *tail) bool {
		for ; len(t.rows) > 0; t.rows = t.rows[:len(t.rows)-1] {
			r := &t.rows[len(t.rows)-1]
			if (resolved || !states[r.state].Resolves()) && selects(t.id, r) {
				return true
			}
		}
		return false
	}
	for id, p := range b.partitions {
		end, bounded := before.End[id]
		if !bounded {
			end = p.next
			if len(before.End) > 0 {
				continue // it came later
			}
		}
		i, _ := p.find(end)
		next.End[id] = end
		if t := (&tail{id, p.rows[:i]}); last(t) {
			tails = append(tails, t)
		}
	}
	for len(tails) > 0 {
		newest := slices.MaxFunc(tails, func(a, b *tail) int {
			x, y := &a.rows[len(a.rows)-1], &b.rows[len(b.rows)-1]
			return cmp.Or(cmp.Compare(x.entered, y.entered), cmp.Compare(b.id, a.id))
		})
		if len(rows) == n {
			return rows, next, true
		}
		r := &newest.rows[len(newest.rows)-1]
		rows = append(rows, b.row(newest.id, r))
		next.End[newest.id] = r.offset
		newest.rows = newest.rows[:len(newest.rows)-1]
		if !last(newest) {
			tails = slices.DeleteFunc(tails, func(t *tail) bool { return t == newest })
		}
	}
	return rows, next, false
}

// Entered counts the letters that were written within a time before now, duplicates not among them.
func (b *Book) Entered(since time.Time) (n int64) {
	for _, of := range b.EnteredBy(since) {
		n += of
	}
	return n
}

// EnteredBy counts as Entered does, by class.
func (b *Book) EnteredBy(since time.Time) map[string]int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	at := since.UnixMilli()
	counts := map[string]int64{}
	for _, p := range b.partitions {
		for i := len(p.rows) - 1; i >= 0 && p.rows[i].entered >= at; i-- {
			if r := &p.rows[i]; !r.copied {
				counts[b.kinds.all[r.kind].Class]++
			}
		}
	}
	return counts
}

// OpenBefore counts the open letters that were written before each of some times.
func (b *Book) OpenBefore(times ...time.Time) []int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	counts := make([]int64, len(times))
	for _, p := range b.partitions {
		for i := range p.rows {
			r := &p.rows[i]
			if states[r.state].Resolves() {
				continue
			}
			for n, at := range times {
				if r.entered < at.UnixMilli() {
					counts[n]++
				}
			}
		}
	}
	return counts
}

// LastFailed returns when the last of the letters failed that a filter selects, resolved ones
// included; zero if there is none.
func (b *Book) LastFailed(f *dlq.Filter) time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	selects := b.selector(f)
	last := int64(math.MinInt64)
	for id, p := range b.partitions {
		for i := range p.rows {
			if r := &p.rows[i]; r.failed > last && selects(id, r) {
				last = r.failed
			}
		}
	}
	if last == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMilli(last)
}
