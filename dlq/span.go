package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/client"
)

// lookBack is how many offsets before its cursor a read of letters begins, to recognize duplicates
// after the cursor. A lane writes the two at most 1,000 copies apart, the most that it has in
// flight.
const lookBack = 4_096

// Freeze returns a cursor from the topic's start to its present end. A read with that cursor, also
// after it advanced, never yields a letter that came later. opts connect to the cluster.
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

// take advances the span to the offset after a record, and reports whether the record is part of
// the read.
func (s *span) take(record *kgo.Record) bool {
	if record.Offset < s.at {
		return false
	}
	s.at = record.Offset + 1
	return record.Offset < s.end && !record.Attrs.IsControl()
}

// back returns the span extended by lookBack offsets before it.
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
		return nil, errors.New("the topic name is empty")
	}
	if from.Topic != "" && from.Topic != topic {
		return nil, fmt.Errorf("the cursor is of topic %q", from.Topic)
	}
	adm, err := client.NewAdmin(opts...)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	return listBounds(ctx, adm, topic).spans(topic, math.MaxInt, from)
}

// bounds are the starts and ends of the partitions of topics, as brokers listed them.
type bounds struct {
	starts, ends      kadm.ListedOffsets
	startsErr, endErr error // of the brokers that did not answer
}

func listBounds(ctx context.Context, adm *kadm.Client, topics ...string) (b bounds) {
	// Starts are listed first: a start that is listed after the ends could be beyond them.
	b.starts, b.startsErr = adm.ListStartOffsets(ctx, topics...)
	// The end is the high watermark, not the last stable offset. So the span has every letter that
	// was acknowledged before, also those after the begin of an open transaction.
	b.ends, b.endErr = adm.ListEndOffsets(ctx, topics...)
	return b
}

// spans turns a cursor into spans of a topic that has so many partitions.
func (b bounds) spans(topic string, partitions int, from Cursor) (map[int32]span, error) {
	starts, err := offsets(b.starts, b.startsErr, topic, partitions)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := offsets(b.ends, b.endErr, topic, partitions)
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
			errs = append(errs, fmt.Errorf("the cursor has partition %d, which the topic does not have", p))
		case max(s.at, s.end) > end || s.at < 0 || s.end < 0:
			errs = append(errs, fmt.Errorf("the cursor is at %d and ends at %d in partition %d, which ends at %d: was the topic recreated?", s.at, s.end, p, end))
		}
		// Letters that expired meanwhile cannot be read.
		s.start = starts[p]
		s.at = max(s.at, s.start)
		spans[p] = s
	}
	for p := range from.At {
		if _, ok := ends[p]; !ok && len(from.End) == 0 {
			errs = append(errs, fmt.Errorf("the cursor has partition %d, which the topic does not have", p))
		}
	}
	return spans, errors.Join(errs...)
}

// offsets returns the listed offsets of a topic's partitions. missing is the error of brokers that
// did not answer. It is the topic's if the list has not all of its partitions.
func offsets(listed kadm.ListedOffsets, missing error, topic string, partitions int) (map[int32]int64, error) {
	if missing != nil && len(listed[topic]) < partitions {
		return nil, missing
	}
	// kadm reports a missing topic by a partition -1.
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
