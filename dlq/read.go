package dlq

import (
	"context"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Read yields the dead letters of a topic that the filter selects. It reads from the cursor to the
// cursor's end, or to the end that the topic has when the read begins. Letters of a partition come
// in order, and partitions interleave. Letters that expired are skipped without an error.
//
// Read yields committed letters only. It waits for transactions that are open before the end. A
// record whose headers are broken, or of no known [Dialect], is yielded with [Letter.MetaErr] set.
//
// An error comes with a nil letter and ends the read. There is one exception: a partition that
// delivers nothing for a minute before its end (no leader, or a transaction that never ends) gives
// an error, and the other partitions are still read. The letters before an error are valid.
//
// opts connect to the cluster, and may tune fetching; Read overrides options that would change its
// result. Each range over the result is a new read with its own client, which is closed when the
// loop ends and sends brokers no client metrics (KIP-714). To continue later, keep a cursor from
// [Freeze] and advance it letter by letter.
func Read(ctx context.Context, topic string, f Filter, from Cursor, opts ...kgo.Opt) iter.Seq2[*Letter, error] {
	return readBy(ctx, builtin, topic, f, from, opts)
}

func readBy(ctx context.Context, known *Dialects, topic string, f Filter, from Cursor, opts []kgo.Opt) iter.Seq2[*Letter, error] {
	s := scan{topic: topic, opts: opts, soon: true, narrow: f.narrow}
	return yieldFrom(ctx, s, from, func(record *kgo.Record) *Letter {
		l := newLetter(record, known)
		if !f.Selects(l) {
			return nil
		}
		return l
	})
}

// Records yields the letters of ranges, or of the whole topic without ranges, as plain records. It
// reads like [Read], but does not parse headers, which costs more than all the rest. Use it to read
// many letters that are selected already. Its fetches are larger than those of Read.
func Records(ctx context.Context, topic string, ranges []Range, opts ...kgo.Opt) iter.Seq2[*kgo.Record, error] {
	f := Filter{Ranges: ranges}
	s := scan{topic: topic, opts: opts, narrow: f.narrow}
	return yieldFrom(ctx, s, Cursor{}, func(record *kgo.Record) *kgo.Record {
		if !f.within(record) {
			return nil
		}
		return record
	})
}

// yieldFrom yields what take makes of a scan's records, without those of which it makes nil. Each
// range over the result has a copy of the scan.
func yieldFrom[T any](ctx context.Context, s scan, from Cursor, take func(*kgo.Record) *T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		s := s
		s.keep = func(r *kgo.Record) bool {
			t := take(r)
			return t == nil || yield(t, nil)
		}
		s.problem = func(err error) bool { return yield(nil, fmt.Errorf("dlq: read %q: %w", s.topic, err)) }
		s.run(ctx, from)
	}
}
