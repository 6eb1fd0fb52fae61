package letterindex

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidingkafka/siding/dlq"
)

// Summary counts the letters of a topic.
type Summary struct {
	// Open, Pending, Resolved and Duplicates are as in [dlq.Summary].
	Open, Pending, Resolved, Duplicates int64
	// Oldest and Newest are when the first and the last of the open letters were written; zero if
	// none is open.
	Oldest, Newest time.Time
	// Groups are the open letters by class and fingerprint, the most letters first.
	Groups []Group
	// ResolvedAs splits Resolved by the letters' states.
	ResolvedAs map[dlq.State]int64
	// Written counts by class all letters that are not duplicates, resolved ones included, and
	// FirstWritten has when the first of them was written.
	Written      map[string]int64
	FirstWritten map[string]time.Time
}

// Group counts the open letters of one class and fingerprint.
type Group struct {
	Class, Fingerprint string
	Open               int64
	// FailedAgain counts the letters, of those that are still in the topic, that were redriven and
	// failed again.
	FailedAgain int64
	// First and Last are when the first and the last of them failed.
	First, Last time.Time
	// Groups are the consumer groups that failed so, Versions the versions of their services, and
	// Reasons the reasons of the letters, each sorted.
	Groups, Versions, Reasons []string
	// Sample is the message of the first letter of the group that the index read, which is the one
	// at Partition and Offset.
	Sample    string
	Partition int32
	Offset    int64
	// FirstSeen is of all letters of the class and fingerprint that the filter may select by what
	// they have in common: open or not, and of whatever time.
	FirstSeen FirstSeen
}

// Progress is how far an index is.
type Progress struct {
	// Complete is when the last refresh that missed nothing began, but for what a newer siding
	// wrote; zero if there was none.
	Complete time.Time
	// Read is when the last refresh began that read letters, perhaps not those of all partitions;
	// zero if there was none.
	Read time.Time
	// Letters is how many letters the index has, and Unread how many offsets the refresh under way
	// has still to read.
	Letters, Unread int64
	// Problem is why the last refresh missed something; nil if it did not.
	Problem error
}

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
	type name struct{ class, fingerprint string }
	at := map[name]int{}
	failed, began := map[name]int64{}, map[name]*FirstSeen{}
	for n, t := range kinds {
		k := &b.kinds.all[n]
		if f := began[name{k.Class, k.Fingerprint}]; of.kinds[n] && !k.first.At.IsZero() && (f == nil || k.first.before(f)) {
			began[name{k.Class, k.Fingerprint}] = &k.first
		}
		if t.failed > 0 {
			failed[name{k.Class, k.Fingerprint}] += t.failed
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
		i, ok := at[name{k.Class, k.Fingerprint}]
		if !ok {
			i = len(s.Groups)
			at[name{k.Class, k.Fingerprint}] = i
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
	for i := range s.Groups {
		g := &s.Groups[i]
		g.FailedAgain, g.FirstSeen = failed[name{g.Class, g.Fingerprint}], *began[name{g.Class, g.Fingerprint}]
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
