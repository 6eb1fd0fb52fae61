package letterindex

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Progress returns how far the index is.
func (b *Index) Progress() Progress {
	b.mu.RLock()
	defer b.mu.RUnlock()
	p := Progress{Complete: b.complete, Read: b.read, Unread: b.unread, Problem: b.problem}
	for _, of := range b.partitions {
		p.Letters += int64(of.n)
	}
	return p
}

// Summary counts the letters. The result is shared: do not modify it.
func (b *Index) Summary() *Summary {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.summary == nil || b.summarized != b.changes {
		b.summary, b.summarized = b.count(b.selects(&dlq.Filter{})), b.changes
	}
	return b.summary
}

// Select counts the letters that a filter selects. It must have no Keys, Headers and
// Match. The result is shared: do not modify it.
func (b *Index) Select(f *dlq.Filter) *Summary {
	if selectsAll(f) {
		return b.Summary()
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.count(b.selects(f))
}

// count counts the selected rows. The caller holds the lock.
func (b *Index) count(of *selection) *Summary {
	s := &Summary{ResolvedAs: map[dlq.State]int64{}, Written: map[string]int64{}, FirstWritten: map[string]time.Time{}}
	type counts struct {
		open, failed, written int64
		began                 int64
		fails                 span // of the open ones
	}
	kinds := make([]counts, len(b.kinds.all))
	var entered span // of the open ones
	b.visit(of, nil, func(t *tally) {
		k := &kinds[t.kind]
		if !t.copied {
			if k.written == 0 || t.entered.first < k.began {
				k.began = t.entered.first
			}
			k.written += t.n
		}
		switch state := states[t.state]; {
		case state == dlq.Redriven:
			s.Pending += t.n
		case state == dlq.Duplicate && t.copied:
			s.Duplicates += t.n
		case state.Resolves():
			s.Resolved += t.n
			s.ResolvedAs[state] += t.n
			if state == dlq.Failed {
				k.failed += t.n
			}
		default:
			if s.Open == 0 {
				entered = t.entered
			}
			if k.open == 0 {
				k.fails = t.failed
			}
			entered = span{min(entered.first, t.entered.first), max(entered.last, t.entered.last)}
			k.fails = span{min(k.fails.first, t.failed.first), max(k.fails.last, t.failed.last)}
			k.open += t.n
			s.Open += t.n
		}
	})
	if s.Open > 0 {
		s.Oldest, s.Newest = time.UnixMilli(entered.first), time.UnixMilli(entered.last)
	}
	at := map[named]int{}
	failed := map[named]int64{}
	for n, t := range kinds {
		k := &b.kinds.all[n]
		if t.failed > 0 {
			failed[named{k.Class, k.Fingerprint}] += t.failed
		}
		if t.written > 0 {
			s.Written[k.Class] += t.written
			if began, ok := s.FirstWritten[k.Class]; !ok || t.began < began.UnixMilli() {
				s.FirstWritten[k.Class] = time.UnixMilli(t.began)
			}
		}
		if t.open == 0 {
			continue
		}
		first, last := time.UnixMilli(t.fails.first), time.UnixMilli(t.fails.last)
		i, ok := at[named{k.Class, k.Fingerprint}]
		if !ok {
			i = len(s.Groups)
			at[named{k.Class, k.Fingerprint}] = i
			s.Groups = append(s.Groups, Group{
				Class: k.Class, Fingerprint: k.Fingerprint, First: first, Last: last, Sample: k.sample, Partition: k.at.partition, Offset: k.at.offset,
			})
		}
		g := &s.Groups[i]
		g.Open += t.open
		if first.Before(g.First) {
			g.First = first
		}
		if last.After(g.Last) {
			g.Last = last
		}
		g.Groups, g.Versions, g.Reasons = add(g.Groups, k.Group), add(g.Versions, k.Version), add(g.Reasons, string(k.Reason))
	}
	began := firstSeen(&b.kinds, of.kinds)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.FailedAgain, g.FirstSeen = failed[named{g.Class, g.Fingerprint}], *began[named{g.Class, g.Fingerprint}]
		slices.Sort(g.Groups)
		slices.Sort(g.Versions)
		slices.Sort(g.Reasons)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Open, a.Open), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return s
}

// add adds a text to a list that lacks it, unless it is empty.
func add(all []string, text string) []string {
	if text == "" || slices.Contains(all, text) {
		return all
	}
	return append(all, text)
}

// named is what groups of letters have in common.
type named struct{ class, fingerprint string }

// firstSeen returns the letter that failed first of each class and fingerprint, of some kinds.
func firstSeen(k *kinds, of []bool) map[named]*FirstSeen {
	all := map[named]*FirstSeen{}
	for n := range k.all {
		is := &k.all[n]
		name := named{is.Class, is.Fingerprint}
		if known := all[name]; of[n] && !is.first.At.IsZero() && (known == nil || is.first.before(known)) {
			all[name] = &is.first
		}
	}
	return all
}
