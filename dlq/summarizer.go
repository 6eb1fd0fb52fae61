package dlq

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

// summarizer computes a summary, letter by letter.
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
	resolvedAs [stateOf + len(states)]int64 // by stateCode

	by      int64                    // the length of times in milliseconds; 0 for none
	times   *boundedTable[TimeCount] // the latest sort first
	earlier TimeCount

	value  func(*Letter, *ValueCounts) // nil for none
	values ValueCounts

	key     []byte // scratch
	last    *Failure
	lastKey []byte
}

// summarizedLetter is the count of one partition.
type summarizedLetter struct {
	PartitionCount
	begin int64 // earlier letters are only read to recognize their copies
}

func newSummarizer(l *Ledger, f Filter) *summarizer {
	return &summarizer{
		judge: newJudge(l, false), filter: f, unfiltered: f.all(), sum: Summary{Topic: l.topic}, partitions: map[int32]*summarizedLetter{},
		failures: newBoundedTable[Failure](maxFailures), folded: newBoundedTable[Failure](maxFolded), groups: newBoundedTable[int64](maxGroups),
	}
}

// narrow stores the spans that are counted, and extends them by those that are read to recognize
// duplicates.
func (t *summarizer) narrow(left map[int32]span) {
	t.filter.narrow(left)
	for p, s := range left {
		t.partitions[p] = &summarizedLetter{PartitionCount: PartitionCount{Partition: p}, begin: s.at}
		left[p] = s.back()
	}
}

func (t *summarizer) add(r *kgo.Record) {
	// The judge sees every letter, to recognize duplicates of letters that are not selected.
	state := t.judge.state(r)
	p := t.partitions[r.Partition]
	if r.Offset < p.begin {
		return
	}
	var l *Letter
	if !t.unfiltered || t.value != nil {
		l = newLetter(r, t.judge.ledger.dialects)
		l.State = state
	}
	if !t.unfiltered && !t.filter.Selects(l) {
		return
	}
	switch {
	case t.judge.copy != noCopy:
		p.Duplicates++
		return
	case state == Redriven:
		p.Pending++
		return
	case state.Resolves():
		p.Resolved++
		t.resolvedAs[stateCode(state)]++
		return
	}
	if p.Open++; p.Open == 1 {
		p.OldestOffset, p.Oldest = r.Offset, r.Timestamp
	}
	g := &t.judge.view
	damaged := false
	if g.foreign() {
		t.sum.Foreign++
		damaged = t.foreign(g, r)
	}
	*t.group(g)++
	at := g.failedAt
	if at < 0 {
		at = r.Timestamp.UnixMilli()
	}
	if t.by > 0 {
		t.time(at)
	}
	if t.value != nil {
		t.value(l, &t.values)
	}
	t.failure(g).add(g, time.UnixMilli(at), r.Partition, r.Offset)
	if damaged || isDamaged(r) { // as a plan counts them
		t.sum.Malformed++
	}
}

func isDamaged(r *kgo.Record) bool {
	_, err := headers.Parse(r.Headers)
	return damaged(err)
}

// foreign counts a letter that siding did not write, and reads it by its dialect. It reports
// whether the headers of that are damaged.
func (t *summarizer) foreign(g *headerView, r *kgo.Record) bool {
	l := newLetter(r, t.judge.ledger.dialects)
	if l.Dialect == "" {
		return false
	}
	if t.sum.Dialects == nil {
		t.sum.Dialects = map[string]int64{}
	}
	t.sum.Dialects[l.Dialect]++
	g.group, g.class, g.fingerprint, g.message = []byte(l.Meta.Group), []byte(l.Meta.Class), []byte(l.Meta.Fingerprint), []byte(l.Meta.Message)
	g.stack = []byte(l.Meta.Stack)
	return l.Damaged()
}

// time counts a letter that failed at a Unix millisecond. The table keeps what sorts first, so the
// key of a later time is smaller.
func (t *summarizer) time(at int64) {
	from := at - (at%t.by+t.by)%t.by
	row, out := t.times.row(string(binary.BigEndian.AppendUint64(nil, math.MaxInt64-uint64(max(from, 0)))))
	if out != nil {
		t.early(out.From, out.Open)
	}
	if row == nil {
		t.early(time.UnixMilli(from), 1)
		return
	}
	row.From = time.UnixMilli(from)
	row.Open++
}

// early counts letters that failed before all times that have a row.
func (t *summarizer) early(from time.Time, n int64) {
	if t.earlier.Open == 0 || from.Before(t.earlier.From) {
		t.earlier.From = from
	}
	t.earlier.Open += n
}

// failure returns the row of a letter's failure.
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

// newFailure returns the row of a letter whose class and fingerprint have no row yet. A broken
// class or fingerprint counts as empty.
func (t *summarizer) newFailure(g *headerView) *Failure {
	class, fingerprint := string(g.class), string(g.fingerprint)
	if class != "" && !classify.ValidClass(class) {
		class, g.broken = "", true
	}
	if fingerprint != "" && !validFingerprint(fingerprint) {
		fingerprint, g.broken = "", true
	}
	row, out := t.failures.row(fingerprint + "/" + class)
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

// fold returns the row for failures of a class that have no row of their own.
func (t *summarizer) fold(class string) *Failure {
	row, out := t.folded.row(class)
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
	case !utf8.ValidString(group): // counts as none
		g.broken, group = true, ""
	}
	n, out := t.groups.row(group)
	if out != nil {
		t.otherGroup += *out
	}
	if n == nil {
		return &t.otherGroup
	}
	return n
}

// ended returns the summary, and the error of the read. The summary is nil if the read did not come
// to its end, perhaps without the rest of stalled partitions.
func (t *summarizer) ended(whole bool, err error) (*Summary, error) {
	if err != nil {
		err = fmt.Errorf("dlq: summarize %q: %w", t.sum.Topic, err)
	}
	if !whole {
		return nil, err
	}
	return t.summary(), err
}

func (t *summarizer) summary() *Summary {
	s := &t.sum
	for _, p := range slices.Sorted(maps.Keys(t.partitions)) {
		c := t.partitions[p]
		s.Partitions = append(s.Partitions, c.PartitionCount)
		s.Open, s.Pending, s.Resolved, s.Duplicates = s.Open+c.Open, s.Pending+c.Pending, s.Resolved+c.Resolved, s.Duplicates+c.Duplicates
	}
	s.ResolvedAs = map[State]int64{}
	for i, state := range states {
		if n := t.resolvedAs[stateOf+i]; n > 0 {
			s.ResolvedAs[state] = n
		}
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
	if t.earlier.Open > 0 {
		t.earlier.Earlier = true
		s.Times = append(s.Times, t.earlier)
	}
	if t.by > 0 {
		for _, key := range slices.Backward(t.times.keys) {
			s.Times = append(s.Times, *t.times.rows[key])
		}
	}
	if t.value != nil {
		s.Values = t.values.Top()
	}
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

func validFingerprint(s string) bool {
	return len(s) == 16 && strings.Trim(s, "0123456789abcdef") == ""
}
