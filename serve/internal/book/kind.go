package book

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Kind is what letters have in common that failed in the same way: one class, fingerprint, reason,
// group and service version.
type Kind struct {
	Class, Fingerprint string
	Reason             headers.Reason
	Group, Version     string
}

// mostKinds bounds the kinds of a book. Later ones lose, one after the other, their version, their
// fingerprint, and all but their reason. Beyond mostReasons they lose that, too.
const (
	mostKinds   = 10_000
	mostReasons = 1<<kindBits - 1
)

// kinds numbers kinds. A number never changes its meaning.
type kinds struct {
	all     []kindData
	numbers map[Kind]uint32
}

// kindData is a kind with the first letter that the book read of it.
type kindData struct {
	Kind
	sample string // that letter's message
	at     place
	came   int64 // letters since the book was first complete, duplicates not among them
}

// place is a letter's partition and offset.
type place struct {
	partition int32
	offset    int64
}

// number returns the number of a letter's kind.
func (k *kinds) number(l *dlq.Letter) uint32 {
	m := &l.Meta
	kind := Kind{m.Class, m.Fingerprint, m.Reason, m.Group, m.Version}
	for _, folded := range []struct {
		Kind
		most int
	}{
		{kind, mostKinds},
		{Kind{Class: kind.Class, Fingerprint: kind.Fingerprint, Reason: kind.Reason, Group: kind.Group}, mostKinds},
		{Kind{Class: kind.Class, Reason: kind.Reason, Group: kind.Group}, mostKinds},
		{Kind{Reason: kind.Reason}, mostReasons},
		{Kind{}, mostReasons + 1},
	} {
		if n, ok := k.numbers[folded.Kind]; ok {
			return n
		}
		if len(k.all) < folded.most {
			kind = folded.Kind
			break
		}
	}
	if k.numbers == nil {
		k.numbers = map[Kind]uint32{}
	}
	n := uint32(len(k.all))
	k.numbers[kind] = n
	k.all = append(k.all, kindData{Kind: kind, sample: cut(m.Message, 256), at: place{l.Record.Partition, l.Record.Offset}})
	return n
}

// letter returns a letter with nothing but what a kind tells, for [dlq.Filter.Selects].
func (k *Kind) letter() *dlq.Letter {
	return &dlq.Letter{Record: &kgo.Record{}, Meta: headers.Meta{Class: k.Class, Fingerprint: k.Fingerprint, Reason: k.Reason, Group: k.Group, Version: k.Version}}
}
