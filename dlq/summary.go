package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Bounds of a summary.
const (
	maxFailures = 1_000 // pairs of class and fingerprint
	maxFolded   = 100   // classes whose other fingerprints are told apart from those of others
	maxSample   = 256   // bytes of a sample message
)

// Summary is what a dead-letter topic holds.
type Summary struct {
	// Topic is the dead-letter topic.
	Topic string
	// Open letters are those that nothing became of yet, Resolved ones those that
	// the ledger settles, and Duplicates copies of letters before them about which
	// the ledger says nothing. Only letters that the filter selects are counted.
	Open, Resolved, Duplicates int64
	// Foreign are open letters that siding did not write, as they have no reason,
	// and Malformed those with headers of siding that a summary needs and that are
	// broken.
	Foreign, Malformed int64
	// Failures count the open letters by class and fingerprint, most first. The
	// same letters give the same failures, whatever order they are read in. There
	// are 1,000 at most: those that sort first by fingerprint, and then by class.
	// Letters of others are folded into one failure of their class without a
	// fingerprint, for 100 classes at most: those that sort first; and the rest of
	// all into one without either. These have Folded set.
	Failures []Failure
	// Groups count the open letters by the consumer group that failed, most first.
	// There are 1,000 at most, those that sort first, and one without a name that
	// is Folded for the rest. Without a name and not folded are letters that name
	// no group.
	Groups []GroupCount
	// Partitions has every partition that was read, in their order.
	Partitions []PartitionCount
}

// Failure is a kind of failure: open letters of the same class and fingerprint,
// both empty for letters that have none.
type Failure struct {
	Class, Fingerprint string
	// Folded says that it stands for what has no row of its own.
	Folded bool
	// Count is how many open letters there are, First and Last when the first and
	// the last of them failed.
	Count       int64
	First, Last time.Time
	// Sample is the message of the one that failed first, valid UTF-8 of at most
	// 256 bytes, and Partition and Offset are where it stands.
	Sample    string
	Partition int32
	Offset    int64
}

// GroupCount is how many open letters a consumer group has.
type GroupCount struct {
	Group  string
	Folded bool
	Open   int64
}

// PartitionCount is what one partition of a dead-letter topic holds.
type PartitionCount struct {
	Partition                  int32
	Open, Resolved, Duplicates int64
	// OldestOffset is the first open letter, and Oldest when it was written, which
	// is what retention goes by. They mean nothing where none is open.
	OldestOffset int64
	Oldest       time.Time
}

// Oldest is the partition with the open letter that was written first; ok is false
// where none is open.
func (s *Summary) Oldest() (oldest PartitionCount, ok bool) {
	for _, p := range s.Partitions {
		if p.Open > 0 && (!ok || p.Oldest.Before(oldest.Oldest)) {
			oldest, ok = p, true
		}
	}
	return oldest, ok
}

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
	var errs []error
	s := scan{
		topic: l.topic, opts: l.opts, progress: progress,
		narrow: func(left map[int32]span) {
			f.narrow(left)
			for p, s := range left {
				t.partitions[p] = &summarizedLetter{PartitionCount: PartitionCount{Partition: p}, begin: s.at}
				left[p] = s.back()
			}
		},
		keep: func(r *kgo.Record) bool {
			t.add(r)
			return true
		},
		problem: func(err error) bool {
			errs = append(errs, err)
			return true
		},
	}
	whole := s.run(ctx, from)
	if err := errors.Join(errs...); err != nil {
		err = fmt.Errorf("dlq: summarize %q: %w", l.topic, err)
		if !whole {
			return nil, err
		}
		return t.summary(), err
	}
	return t.summary(), nil
}

// summarizer is a summary under way.
type summarizer struct {
	judge      *judge
	filter     Filter
	unfiltered bool

	sum        Summary
	partitions map[int32]*summarizedLetter
	failures   *boundedTable[Failure] // by fingerprint and class
	folded     *boundedTable[Failure] // by class
	rest       Failure
	groups     *boundedTable[int64]
	otherGroup int64

	key     []byte // scratch
	last    *Failure
	lastKey []byte
}

// summarizedLetter is a partition of a tally.
type summarizedLetter struct {
	PartitionCount
	begin int64 // letters before it are looked at for the copies that come later
}

func newSummarizer(l *Ledger, f Filter) *summarizer {
	return &summarizer{
		judge: newJudge(l), filter: f, unfiltered: f.all(), sum: Summary{Topic: l.topic}, partitions: map[int32]*summarizedLetter{},
		failures: newBoundedTable[Failure](maxFailures), folded: newBoundedTable[Failure](maxFolded), groups: newBoundedTable[int64](maxGroups),
	}
}

func (t *summarizer) add(r *kgo.Record) {
	state := t.judge.state(r) // of each, or a duplicate of one that is not selected would not be known
	p := t.partitions[r.Partition]
	if r.Offset < p.begin {
		return
	}
	if !t.unfiltered {
		l := newLetter(r)
		l.State = state
		if !t.filter.Selects(l) {
			return
		}
	}
	switch {
	case t.judge.copy != noCopy:
		p.Duplicates++
		return
	case state.Resolves():
		p.Resolved++
		return
	}
	if p.Open++; p.Open == 1 {
		p.OldestOffset, p.Oldest = r.Offset, r.Timestamp
	}
	g := &t.judge.glance
	if g.foreign() {
		t.sum.Foreign++
	}
	*t.group(g)++
	at := g.failedAt
	if at < 0 {
		at = r.Timestamp.UnixMilli()
	}
	t.failure(g).add(g.message, time.UnixMilli(at), r.Partition, r.Offset)
	if g.broken {
		t.sum.Malformed++
	}
}

// failure returns the row of a letter.
func (t *summarizer) failure(g *headerView) *Failure {
	t.key = append(append(append(t.key[:0], g.fingerprint...), '/'), g.class...)
	if t.last != nil && string(t.key) == string(t.lastKey) {
		return t.last
	}
	row := t.failures.rows[string(t.key)]
	if row == nil {
		row = t.newFailure(g)
	} else {
		t.last, t.lastKey = row, append(t.lastKey[:0], t.key...)
	}
	return row
}

// newFailure returns the row of a letter whose class and fingerprint have none, or are broken and so count as none.
func (t *summarizer) newFailure(g *headerView) *Failure {
	class, fingerprint := string(g.class), string(g.fingerprint)
	if class != "" && !classify.ValidClass(class) {
		class, g.broken = "", true
	}
	if fingerprint != "" && !validFingerprint(fingerprint) {
		fingerprint, g.broken = "", true
	}
	key := fingerprint + "/" + class
	if row := t.failures.rows[key]; row != nil {
		return row
	}
	row, _, out := t.failures.row(key)
	if out != nil {
		if t.last == out {
			t.last = nil
		}
		t.fold(out.Class).merge(out)
	}
	if row == nil {
		return t.fold(class)
	}
	row.Class, row.Fingerprint = class, fingerprint
	return row
}

// fold returns the row of what has none of its own.
func (t *summarizer) fold(class string) *Failure {
	if row := t.folded.rows[class]; row != nil {
		return row
	}
	row, _, out := t.folded.row(class)
	if out != nil {
		t.rest.merge(out)
	}
	if row == nil {
		return &t.rest
	}
	row.Class = class
	return row
}

func (t *summarizer) group(g *headerView) *int64 {
	if n := t.groups.rows[string(g.group)]; n != nil {
		return n
	}
	group := string(g.group)
	switch {
	case len(group) > maxName:
		return &t.otherGroup
	case !utf8.ValidString(group): // as if there were none
		g.broken, group = true, ""
		if n := t.groups.rows[group]; n != nil {
			return n
		}
	}
	n, _, out := t.groups.row(group)
	if out != nil {
		t.otherGroup += *out
	}
	if n == nil {
		return &t.otherGroup
	}
	return n
}

// add counts a letter.
func (f *Failure) add(message []byte, at time.Time, partition int32, offset int64) {
	if f.Count++; f.Count == 1 || at.After(f.Last) {
		f.Last = at
	}
	if f.Count == 1 || f.after(at, partition, offset) {
		f.First, f.Partition, f.Offset = at, partition, offset
		f.Sample = strings.ToValidUTF8(string(message[:min(len(message), maxSample)]), "")
	}
}

// after reports whether the first letter is behind another one: by time, then by place, so that it does not matter which is seen first.
func (f *Failure) after(at time.Time, partition int32, offset int64) bool {
	return cmp.Or(at.Compare(f.First), cmp.Compare(partition, f.Partition), cmp.Compare(offset, f.Offset)) < 0
}

// merge adds what another row counted.
func (f *Failure) merge(other *Failure) {
	if f.Count == 0 || f.after(other.First, other.Partition, other.Offset) {
		f.First, f.Partition, f.Offset, f.Sample = other.First, other.Partition, other.Offset, other.Sample
	}
	if f.Count == 0 || other.Last.After(f.Last) {
		f.Last = other.Last
	}
	f.Count += other.Count
}

func (t *summarizer) summary() *Summary {
	s := &t.sum
	for _, p := range slices.Sorted(maps.Keys(t.partitions)) {
		c := t.partitions[p]
		s.Partitions = append(s.Partitions, c.PartitionCount)
		s.Open, s.Resolved, s.Duplicates = s.Open+c.Open, s.Resolved+c.Resolved, s.Duplicates+c.Duplicates
	}
	for _, f := range t.failures.rows {
		s.Failures = append(s.Failures, *f)
	}
	for _, f := range t.folded.rows {
		f.Folded = true
		s.Failures = append(s.Failures, *f)
	}
	if t.rest.Count > 0 {
		t.rest.Folded = true
		s.Failures = append(s.Failures, t.rest)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Fingerprint, b.Fingerprint), last(a.Folded, b.Folded))
	})
	for group, n := range t.groups.rows {
		s.Groups = append(s.Groups, GroupCount{Group: group, Open: *n})
	}
	if t.otherGroup > 0 {
		s.Groups = append(s.Groups, GroupCount{Folded: true, Open: t.otherGroup})
	}
	slices.SortFunc(s.Groups, func(a, b GroupCount) int {
		return cmp.Or(cmp.Compare(b.Open, a.Open), cmp.Compare(a.Group, b.Group), last(a.Folded, b.Folded))
	})
	return s
}

// last orders what is folded behind what is not.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func validFingerprint(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
