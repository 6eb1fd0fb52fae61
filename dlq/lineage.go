package dlq

import (
	"github.com/sidingkafka/siding/internal/offsetset"
)

// Of more groups, and of more lineages, duplicates are not known: what nobody has, but anyone could forge, must not take all memory.
const (
	maxGroups   = 1_000
	maxLineages = 1 << 16
)

// lineage is what two letters of a partition share that come from records of the same partition, by way of the same group and the same
// redrive run. Those with the same original offset as well are one letter: something crashed between writing it and committing.
type lineage struct {
	at             int32 // the letters' partition
	group, topic   string
	partition      int64
	redrive        string
	originalOffset *offsetset.Set
}

// is reports whether a letter is of the lineage, which is of the letter's partition.
func (l *lineage) is(g *glance) bool {
	return l.partition == g.partition && l.group == string(g.group) && l.topic == string(g.topic) && l.redrive == string(g.redrive)
}

// lineageKey finds a lineage.
type lineageKey struct {
	at        int32
	group     string
	topic     string
	partition int64
	redrive   string
}

// lineages finds duplicates among letters that are shown to it in the order of their partitions. It keeps two bytes a letter at most,
// a bit where original offsets are dense, and more where of many thousands in a row only a few were dead-lettered.
type lineages struct {
	all    map[lineageKey]*lineage
	last   map[int32]*lineage // by the letters' partition: most letters are of the one of that before them
	groups map[string]bool
}

func newLineages() *lineages {
	return &lineages{all: map[lineageKey]*lineage{}, last: map[int32]*lineage{}, groups: map[string]bool{}}
}

// duplicate reports whether a letter is one that came before.
func (ls *lineages) duplicate(partition int32, g *glance) bool {
	if !g.located() {
		return false
	}
	l := ls.last[partition]
	if l == nil || !l.is(g) {
		if l = ls.find(partition, g); l == nil {
			return false
		}
		ls.last[partition] = l
	}
	return !l.originalOffset.Add(g.offset)
}

// has reports whether a letter would be a duplicate.
func (ls *lineages) has(partition int32, g *glance) bool {
	l := ls.all[lineageKey{partition, string(g.group), string(g.topic), g.partition, string(g.redrive)}]
	return l != nil && l.originalOffset.Has(g.offset)
}

func (ls *lineages) find(partition int32, g *glance) *lineage {
	// Written like this a look-up makes no strings.
	if l := ls.all[lineageKey{partition, string(g.group), string(g.topic), g.partition, string(g.redrive)}]; l != nil {
		return l
	}
	if known := ls.groups[string(g.group)]; len(ls.all) == maxLineages || len(ls.groups) == maxGroups && !known {
		return nil
	}
	k := lineageKey{partition, string(g.group), string(g.topic), g.partition, string(g.redrive)}
	l := &lineage{k.at, k.group, k.topic, k.partition, k.redrive, &offsetset.Set{}}
	ls.all[k] = l
	ls.groups[k.group] = true
	return l
}
