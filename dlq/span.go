package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// lookBack is how many offsets before its cursor a read of letters begins, to know which of those
// that follow are duplicates. The two are written as far apart as a lane is deep: it has 1,000
// copies in flight at most.
const lookBack = 4_096

// Freeze returns the cursor of a read of the topic from its start to where it
// ends now. Reading with it again, or with it advanced, never shows a letter that
// came later. The options say how to reach the cluster.
func Freeze(ctx context.Context, topic string, opts ...kgo.Opt) (Cursor, error) {
	spans, err := freeze(ctx, topic, Cursor{}, opts)
	if err != nil {
		return Cursor{}, fmt.Errorf("dlq: freeze %q: %w", topic, err)
	}
	c := Cursor{Topic: topic, At: map[int32]int64{}, End: map[int32]int64{}}
	for p, s := range spans {
		c.At[p], c.End[p] = s.at, s.end
	}
	return c, nil
}

// A span is the part of a partition that is left to read.
type span struct {
	at, end int64
	start   int64 // where the partition begins
}

// take moves on behind a record, and reports whether it is one of those to read.
func (s *span) take(record *kgo.Record) bool {
	if record.Offset < s.at {
		return false
	}
	s.at = record.Offset + 1
	return record.Offset < s.end && !record.Attrs.IsControl()
}

// back is the span with what is looked at before it.
func (s span) back() span {
	if s.at < s.end {
		s.at = max(s.start, s.at-lookBack)
	}
	return s
}

// freeze turns a cursor into spans, with the topic's own bounds where the cursor
// has none, and checks it against them.
func freeze(ctx context.Context, topic string, from Cursor, opts []kgo.Opt) (map[int32]span, error) {
	if topic == "" {
		return nil, errors.New("there is no topic")
	}
	if from.Topic != "" && from.Topic != topic {
		return nil, fmt.Errorf("the cursor is of topic %q", from.Topic)
	}
	adm, err := client.NewAdmin(opts...)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	// The starts first: a start read after the ends could lie behind them.
	starts, err := offsets(ctx, adm.ListStartOffsets, topic)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	// The end is the high watermark, not the last stable offset, so that every
	// letter that was acknowledged before is within, also behind an open
	// transaction.
	ends, err := offsets(ctx, adm.ListEndOffsets, topic)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}

	frozen := from.End
	if len(frozen) == 0 {
		frozen = ends
	}
	var errs []error
	spans := make(map[int32]span, len(frozen))
	for _, p := range slices.Sorted(maps.Keys(frozen)) {
		s := span{at: from.At[p], end: frozen[p]}
		end, ok := ends[p]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("the cursor has partition %d, the topic has not", p))
		case max(s.at, s.end) > end || s.at < 0 || s.end < 0:
			errs = append(errs, fmt.Errorf("the cursor is at %d and ends at %d in partition %d, which ends at %d: was the topic recreated?", s.at, s.end, p, end))
		}
		// What expired meanwhile is not there to be read.
		s.start = starts[p]
		s.at = max(s.at, s.start)
		spans[p] = s
	}
	for p := range from.At {
		if _, ok := ends[p]; !ok && len(from.End) == 0 {
			errs = append(errs, fmt.Errorf("the cursor has partition %d, the topic has not", p))
		}
	}
	return spans, errors.Join(errs...)
}

// offsets lists one kind of offset of every partition of a topic.
func offsets(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string) (map[int32]int64, error) {
	listed, err := list(ctx, topic)
	if err != nil {
		return nil, err
	}
	// kadm tells a missing topic by a partition -1.
	if none, ok := listed.Lookup(topic, -1); ok || len(listed[topic]) == 0 {
		if none.Err == nil || errors.Is(none.Err, kerr.UnknownTopicOrPartition) {
			return nil, errors.New("the topic does not exist")
		}
		return nil, none.Err
	}
	at := make(map[int32]int64, len(listed[topic]))
	var errs []error
	for p, o := range listed[topic] {
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("partition %d: %w", p, o.Err))
		}
		at[p] = o.Offset
	}
	return at, errors.Join(errs...)
}
