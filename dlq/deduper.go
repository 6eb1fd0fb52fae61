package dlq

import (
	"math"
	"time"

	"github.com/sidingkafka/siding/internal/offsetset"
)

// Of more groups, and of more lineages, copies are not known: what no cluster has, but anyone could
// forge, must not take all memory.
const (
	maxGroups   = 1_000
	maxLineages = 1 << 16
)

// lineage is what letters of a partition share that come from records of the same partition of the
// same source, by way of the same group and the same redrive run. Those with the same original
// offset as well are of one record. See DESIGN.md, "Duplicate letters".
type lineage struct {
	lineageKey
	open     offsetset.Set // original offsets of the letters that are open
	openAt   places        // where these stand
	resolved resolved
}

// resolved are the letters of a lineage about whose record something was done, by their original
// offset: of several the last.
type resolved struct {
	offsets offsetset.Set
	at      places // where they stand
	latest  places // of several, where the one stands that was resolved last
	// Unix seconds before which a copy failed that was settled with the latest
	since offsetset.Numbers
	// failed is when the letter's record failed, in Unix milliseconds, in two parts: of nearly all
	// letters the upper one is the same.
	failedHigh, failedLow offsetset.Numbers
}

// is reports whether a letter is of the lineage, which is of the letter's partition.
func (l *lineage) is(g *headerView) bool {
	return l.partition == g.partition && l.group == string(g.group) && l.source == string(g.source) && l.topic == string(g.topic) && l.redrive == string(g.redrive)
}

// lineageKey finds a lineage.
type lineageKey struct {
	at        int32 // the letters' partition
	group     string
	topic     string
	source    string // the topic's id
	partition int64
	redrive   string
}

// copied says of what a letter is the copy, as far as the letters before it and their entries tell.
type copied uint8

const (
	noCopy     copied = iota
	copyOfOpen        // of a letter that is open
	// of a letter that was open still when this one failed, and about whose record something was
	// done since
	copyOfResolved
)

// places say where letters stand, by their original offset: how far that is from there, where as a
// rule all are as far as their neighbors.
type places struct {
	distances offsetset.Numbers // modulo 2³²
	first     int64             // where the first of them stands, plus one
}

func (p *places) add(original, offset int64) {
	if p.first == 0 {
		p.first = offset + 1
	}
	p.distances.Set(original, uint32(offset-original))
}

// before says how far before an offset a letter stands that was added; 0 where that may be 2³² or
// more.
func (p *places) before(original, offset int64) uint32 {
	if offset-p.first >= math.MaxUint32 {
		return 0
	}
	return uint32(offset-original) - p.distances.Of(original)
}

// resolve keeps a letter that was resolved, and since when copies of it are letters of their own.
// latest says that no letter of the record was resolved later.
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

// add keeps a letter that no entry resolves, unless it is a copy. written is when the broker
// has it from.
func (l *lineage) add(g *headerView, written time.Time) copied {
	if r := &l.resolved; r.offsets.Len() > 0 && r.offsets.Has(g.offset) && r.covers(g, written) {
		return copyOfResolved
	}
	if !l.open.Add(g.offset) {
		return copyOfOpen
	}
	return noCopy
}

// place keeps where a resolved letter stands.
func (r *resolved) place(g *headerView, offset int64, latest bool) {
	r.at.add(g.offset, offset)
	if latest {
		r.latest.add(g.offset, offset)
	}
}

// name keeps where a letter stands that was added, or says of a copy how far behind its letter
// it stands, 0 where that is too far. The letter is the one by which it is a copy: another one may
// be resolved still when that is open again.
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

// covers reports whether a letter failed before the one with its original offset was resolved, by
// the clock of its host and by that of its broker: either may be wrong, and what is taken for a
// copy is not seen again. Or whether both are of one failure, as those of an archive are that was
// imported.
func (r *resolved) covers(g *headerView, written time.Time) bool {
	return r.same(g) || max(g.failedAt, written.UnixMilli()) < int64(r.since.Of(g.offset))*1000
}

// seconds are the whole Unix seconds of a time, or the nearest that there are.
func seconds(at time.Time) uint32 { return uint32(min(max(at.Unix(), 0), math.MaxUint32)) }

// deduper finds copies among letters that are shown to it in the order of their partitions. It
// keeps two bytes a letter at most, a bit where original offsets are dense, and more where of many
// thousands in a row only a few were dead-lettered. Of a letter that is settled it keeps six bytes
// more, and another six where its neighbors were settled at other seconds; where it is to name the
// letter of a copy, six for each that is not as far from its original offset as its neighbors.
type deduper struct {
	all map[lineageKey]*lineage
	// by the letters' partition: most letters are of the one of that before them
	last   map[int32]*lineage
	groups map[string]bool
}

func newDeduper() *deduper {
	return &deduper{all: map[lineageKey]*lineage{}, last: map[int32]*lineage{}, groups: map[string]bool{}}
}

// of is the lineage of a letter; nil where the letter can't be the copy of another one.
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
	// Written like this a look-up makes no strings.
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
