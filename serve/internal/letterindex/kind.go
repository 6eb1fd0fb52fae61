package letterindex

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Kind is what letters have in common that failed in the same way: one class, fingerprint, reason,
// group, service version and dialect.
type Kind struct {
	Class, Fingerprint      string
	Reason                  headers.Reason
	Group, Version, Dialect string
}

// These bound the kinds of an index. Beyond mostKinds new ones lose their version, and then, one
// after the other, their fingerprint, their group and their class: rules go by classes.
const (
	mostKinds        = 10_000
	mostFingerprints = 15_000
	mostGroups       = 20_000
	mostClasses      = 30_000
	mostReasons      = 1<<kindBits - 1
)

// kinds numbers kinds. A number keeps its meaning while a row has it.
type kinds struct {
	all     []kindData
	numbers map[Kind]uint32
	free    []uint32         // of kinds that were forgotten
	gone    map[string]int64 // letters of these that came, by class
}

// kindData is a kind with the first letter that the index read of it.
type kindData struct {
	Kind
	sample string // that letter's message
	at     place
	first  FirstSeen
	came   int64 // letters under observation (see Flow), duplicates not among them
}

// place is a letter's partition and offset.
type place struct {
	partition int32
	offset    int64
}

// number returns the number of a letter's kind.
func (k *kinds) number(l *dlq.Letter) uint32 {
	m := &l.Meta
	kind := Kind{m.Class, m.Fingerprint, m.Reason, m.Group, m.Version, l.Dialect}
	for _, folded := range []struct {
		Kind
		most int
	}{
		{kind, mostKinds},
		{Kind{Class: kind.Class, Fingerprint: kind.Fingerprint, Reason: kind.Reason, Group: kind.Group, Dialect: l.Dialect}, mostFingerprints},
		{Kind{Class: kind.Class, Reason: kind.Reason, Group: kind.Group, Dialect: l.Dialect}, mostGroups},
		{Kind{Class: kind.Class, Reason: kind.Reason, Dialect: l.Dialect}, mostClasses},
		{Kind{Reason: kind.Reason}, mostReasons},
		{Kind{}, mostReasons + 1},
	} {
		if n, ok := k.numbers[folded.Kind]; ok {
			k.all[n].first.see(l)
			return n
		}
		if len(k.numbers) < folded.most {
			kind = folded.Kind
			break
		}
	}
	if k.numbers == nil {
		k.numbers = map[Kind]uint32{}
	}
	data := kindData{Kind: kind, sample: cut(m.Message, 256), at: place{l.Record.Partition, l.Record.Offset}}
	data.first.see(l)
	n := uint32(len(k.all))
	if last := len(k.free) - 1; last >= 0 {
		n, k.free = k.free[last], k.free[:last]
		k.all[n] = data
	} else {
		k.all = append(k.all, data)
	}
	k.numbers[kind] = n
	return n
}

// forgetKinds makes room for new kinds, if there are many: it forgets those that no row has. The
// caller holds the lock.
func (b *Index) forgetKinds() {
	k := &b.kinds
	if len(k.numbers) < mostKinds {
		return
	}
	inUse := make([]bool, len(k.all))
	b.visit(b.selects(&dlq.Filter{}), nil, func(t *tally) { inUse[t.kind] = true })
	for kind, n := range k.numbers {
		if inUse[n] {
			continue
		}
		if came := k.all[n].came; came > 0 {
			if k.gone == nil {
				k.gone = map[string]int64{}
			}
			k.gone[kind.Class] += came
		}
		delete(k.numbers, kind)
		k.all[n] = kindData{}
		k.free = append(k.free, n)
	}
}

// letter returns a letter with nothing but what a kind says, for [dlq.Filter.Selects].
func (k *Kind) letter() *dlq.Letter {
	return &dlq.Letter{Record: &kgo.Record{}, Dialect: k.Dialect, Meta: headers.Meta{Class: k.Class, Fingerprint: k.Fingerprint, Reason: k.Reason, Group: k.Group, Version: k.Version}}
}
