package dlq

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read yields the dead letters of a topic that the filter selects, from the
// cursor on, up to where the topic ends when the read begins, or where the
// cursor ends. Letters of a partition come in order, partitions interleave. What
// expired is not there, and no error.
//
// It reads what is committed: letters of an aborted transaction are not yielded,
// and one still open at the end is waited for. A record whose headers are broken
// or not siding's is yielded with [Letter.MetaErr] set.
//
// An error comes with a nil letter and ends the read, except when one partition
// gives nothing for a minute although it is not at its end (no leader, or a
// transaction that never ends): then the other partitions are still read. The
// letters before an error are good.
//
// The options say how to reach the cluster, and may tune fetching; what makes the
// read what it is overrides them. Each range over the result is a read of its own
// with a client of its own, which is closed when the loop ends, however it ends.
// To go on later, keep a cursor from [Freeze] and advance it letter by letter.
func Read(ctx context.Context, topic string, f Filter, from Cursor, opts ...kgo.Opt) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		s := scan{
			topic: topic, opts: opts, soon: true, narrow: f.narrow,
			keep: func(record *kgo.Record) bool {
				l := newLetter(record)
				return !f.Selects(l) || yield(l, nil)
			},
			problem: func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", topic, err)) },
		}
		s.run(ctx, from)
	}
}

// Records yields what [Read] does, of the ranges that are given, or of the whole
// topic where none is, as the records that stand there: their headers are not
// looked at, which costs more than all the rest. It is for who reads many letters
// and knows already which are wanted, and fetches as much at a time as the options
// say, or kgo by itself.
func Records(ctx context.Context, topic string, ranges []Range, opts ...kgo.Opt) iter.Seq2[*kgo.Record, error] {
	f := Filter{Ranges: ranges}
	return func(yield func(*kgo.Record, error) bool) {
		s := scan{
			topic: topic, opts: opts, narrow: f.narrow,
			keep:    func(record *kgo.Record) bool { return !f.within(record) || yield(record, nil) },
			problem: func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", topic, err)) },
		}
		s.run(ctx, Cursor{})
	}
}
