package dlq

// The bounds up to which letters may be deleted, in the order of their age.

import (
	"cmp"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// mark is a point between letters in the order of their age: by the time of their entry, then by
// partition and offset. The zero mark is before all letters.
type mark struct {
	at time.Time
	place
}

func markOf(r *kgo.Record) mark { return mark{r.Timestamp, place{r.Partition, r.Offset}} }

func (m mark) compare(with mark) int {
	return cmp.Or(m.at.Compare(with.at), cmp.Compare(m.partition, with.partition), cmp.Compare(m.offset, with.offset))
}

// limits are up to where letters may be deleted.
type limits struct {
	resolved *mark // nil: of any age
	open     mark  // of letters that are open or have no outcome, and of copies without an entry
}

// take reports whether a letter may be deleted. held letters are those that open is for.
func (l *limits) take(r *kgo.Record, held bool) bool {
	switch {
	case held:
		return markOf(r).compare(l.open) < 0
	case l.resolved == nil:
		return true
	}
	return markOf(r).compare(*l.resolved) < 0
}
