package dlq

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
