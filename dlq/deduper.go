package dlq

// Recognizes letters that are copies of earlier ones.

import (
	"math"
	"time"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// Copies of further groups and lineages are not recognized. No cluster has so many, but a producer
// could forge them and fill the memory.
const (
	maxGroups   = 1_000
	maxLineages = 1 << 16
)

// lineage groups the letters of a partition that have the same source partition, the same consumer
// group and the same redrive run. Letters of a lineage with the same original offset are of one
// record. See DESIGN.md, "Duplicate letters".
type lineage struct {
	lineageKey
	open     offsetset.Set // original offsets of the open letters
	openAt   places        // the offsets of these letters
	resolved resolved
}

// resolved are the letters of a lineage whose record was redriven or discarded, by original offset.
// Of several letters with the same one, the last counts.
type resolved struct {
	offsets offsetset.Set
	at      places // the offsets of these letters
	latest  places // of several letters of a record, the offset of the one that was resolved last
	// since is in Unix seconds: a copy that failed before is resolved together with the latest
	// letter.
	since offsetset.Numbers
	// These two are the time at which the letter's record failed, in Unix milliseconds. It is
	// stored in two halves, since nearly all letters share the upper one.
	failedHigh, failedLow offsetset.Numbers
}

// is reports whether a letter belongs to the lineage, given that it is in the lineage's partition
// of the dead-letter topic.
func (l *lineage) is(g *headerView) bool {
	return l.partition == g.partition && l.group == string(g.group) && l.source == string(g.source) && l.topic == string(g.topic) && l.redrive == string(g.redrive)
}

// lineageKey identifies a lineage.
type lineageKey struct {
	at        int32 // the letters' partition
	group     string
	topic     string
	source    string // the topic's id
	partition int64
	redrive   string
}

// copied is the kind of letter that a letter is a copy of, judged by earlier letters and their
// entries.
type copied uint8

const (
	noCopy     copied = iota
	copyOfOpen        // of a letter that is open
	// of a letter that was still open when this one failed, and that was redriven or discarded
	// since
	copyOfResolved
)

// places are the offsets of letters, by original offset. They are stored as distances between the
// two, because neighbors mostly have the same distance.
type places struct {
	distances offsetset.Numbers // modulo 2³²
	first     int64             // the offset of the first letter, plus one
}

func (p *places) add(original, offset int64) {
	if p.first == 0 {
		p.first = offset + 1
	}
	p.distances.Set(original, uint32(offset-original))
}

// before returns how far before offset a letter stands that was added; 0 if the distance may be 2³²
// or more.
func (p *places) before(original, offset int64) uint32 {
	if offset-p.first >= math.MaxUint32 {
		return 0
	}
	return uint32(offset-original) - p.distances.Of(original)
}

// resolve adds a resolved letter. A copy that failed at since or later is a letter of its own.
// latest reports that no letter of the record was resolved later.
func (l *lineage) resolve(g *headerView, since uint32) (latest bool) {
	r := &l.resolved
	latest = r.offsets.Add(g.offset) || since >= r.since.Of(g.offset)
	if !latest {
		since = r.since.Of(g.offset)
	}
	r.since.Set(g.offset, since)
	r.failedHigh.Set(g.offset, uint32(g.failedAt>>32))
	r.failedLow.Set(g.offset, uint32(g.failedAt))
	return latest
}

// add adds a letter that no entry resolves, unless it is a copy. written is the timestamp of its
// record.
func (l *lineage) add(g *headerView, written time.Time, reopened bool) copied {
	if r := &l.resolved; !reopened && r.offsets.Len() > 0 && r.offsets.Has(g.offset) && r.covers(g, written) {
		return copyOfResolved
	}
	if !l.open.Add(g.offset) {
		return copyOfOpen
	}
	return noCopy
}

// place stores the offset of a resolved letter.
func (r *resolved) place(g *headerView, offset int64, latest bool) {
	r.at.add(g.offset, offset)
	if latest {
		r.latest.add(g.offset, offset)
	}
}

// name stores the offset of an added letter. For a copy it returns how far after its letter the
// copy stands, 0 if that is too far. That letter is the one whose resolution makes it a copy: of
// several letters of a record, another one may still be resolved when that one is open again.
func (l *lineage) name(c copied, g *headerView, offset int64) (behind uint32) {
	switch c {
	case copyOfOpen:
		return l.openAt.before(g.offset, offset)
	case copyOfResolved:
		if l.resolved.same(g) {
			return l.resolved.at.before(g.offset, offset)
		}
		return l.resolved.latest.before(g.offset, offset)
	}
	l.openAt.add(g.offset, offset)
	return 0
}

// same reports whether a letter and the last one with its original offset are of one failure.
func (r *resolved) same(g *headerView) bool {
	return g.failedAt >= 0 && r.failedLow.Of(g.offset) == uint32(g.failedAt) && r.failedHigh.Of(g.offset) == uint32(g.failedAt>>32)
}

// covers reports whether the resolution of an earlier letter also resolves this one. It does if
// both are of one failure, for example imported from an archive. Otherwise this one must have
// failed before the earlier one was resolved, by the clocks of both its host and its broker: either
// may be wrong, and a letter that is taken for a copy is not shown again.
func (r *resolved) covers(g *headerView, written time.Time) bool {
	return r.same(g) || max(g.failedAt, written.UnixMilli()) < int64(r.since.Of(g.offset))*1000
}

// seconds returns the whole Unix seconds of a time, or the nearest value that fits.
func seconds(at time.Time) uint32 { return uint32(min(max(at.Unix(), 0), math.MaxUint32)) }

// deduper finds copies among letters, which it gets in the order of their partitions. It takes at
// most two bytes a letter, and bits where original offsets are dense. It takes more than two bytes
// where only a few in many thousands are dead letters. A resolved letter takes six bytes more, and
// another six if its neighbors were resolved at other seconds. To name the letters of copies it
// takes six bytes for each letter that is not as far from its original offset as its neighbors.
type deduper struct {
	all map[lineageKey]*lineage
	// last is by the letters' partition: most letters have the lineage of the letter before them.
	last   map[int32]*lineage
	groups map[string]bool
}

func newDeduper() *deduper {
	return &deduper{all: map[lineageKey]*lineage{}, last: map[int32]*lineage{}, groups: map[string]bool{}}
}

// of returns the lineage of a letter; nil if the letter cannot be recognized as a copy.
func (ls *deduper) of(partition int32, g *headerView) *lineage {
	if !g.located() {
		return nil
	}
	l := ls.last[partition]
	if l == nil || !l.is(g) {
		if l = ls.find(partition, g); l != nil {
			ls.last[partition] = l
		}
	}
	return l
}

func (ls *deduper) find(partition int32, g *headerView) *lineage {
	// With the key inline, the look-up allocates no strings.
	if l := ls.all[lineageKey{partition, string(g.group), string(g.topic), string(g.source), g.partition, string(g.redrive)}]; l != nil {
		return l
	}
	if known := ls.groups[string(g.group)]; len(ls.all) == maxLineages || len(ls.groups) == maxGroups && !known {
		return nil
	}
	k := lineageKey{partition, string(g.group), string(g.topic), string(g.source), g.partition, string(g.redrive)}
	l := &lineage{lineageKey: k}
	ls.all[k] = l
	ls.groups[k.group] = true
	return l
}
