package letterindex

import (
	"cmp"
	"strings"
	"time"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/dlq"
)

// FirstSeen is the letter that failed first, of those that the index read, whatever became of it.
type FirstSeen struct {
	// At is when it failed; zero if there is none.
	At time.Time
	// Host and Version are those of the consumer that failed it, and Frame is where in its code:
	// see [classify.Place].
	Host, Version, Frame string
	Partition            int32
	Offset               int64
}

// before reports whether a letter failed before another one: by time, then by place.
func (f *FirstSeen) before(other *FirstSeen) bool {
	return cmp.Or(f.At.Compare(other.At), cmp.Compare(f.Partition, other.Partition), cmp.Compare(f.Offset, other.Offset)) < 0
}

// see keeps a letter if it failed before the others.
func (f *FirstSeen) see(l *dlq.Letter) {
	is := FirstSeen{At: l.FailedAt(), Partition: l.Record.Partition, Offset: l.Record.Offset}
	if f.At.IsZero() || is.before(f) {
		*f = is
		f.Host, f.Version, f.Frame = firstText(l.Meta.Host), firstText(l.Meta.Version), classify.Place(l.Meta.Stack)
	}
}

// firstText returns the part of a text that is kept, without the rest of the record.
func firstText(text string) string { return strings.Clone(cut(text, 256)) }
