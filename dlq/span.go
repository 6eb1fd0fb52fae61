package dlq

// The part of a topic that is read, and the part before it that shows duplicates.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

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
//
// With an error, the cursor has the partitions of which a broker knows the start and the end. It is
// the zero value, which reads any topic, if there are none.
func Freeze(ctx context.Context, topic string, opts ...kgo.Opt) (c Cursor, err error) {
	spans, err := freeze(ctx, topic, opts)
	if err != nil {
		err = fmt.Errorf("dlq: freeze %q: %w", topic, err)
	}
	if err == nil || len(spans) > 0 {
		c = Cursor{Topic: topic, At: map[int32]int64{}, End: map[int32]int64{}}
	}
	for p, s := range spans {
		c.At[p], c.End[p] = s.at, s.end
	}
	return c, err
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

// freeze returns the spans of a whole topic, by a client of its own. With an error it returns those
// that are sound.
func freeze(ctx context.Context, topic string, opts []kgo.Opt) (map[int32]span, error) {
	adm, err := client.NewAdmin(opts...)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	return spansOf(ctx, adm, topic, Cursor{})
}

// spansOf turns a cursor into spans, with the topic's own bounds where the cursor
// has none, and checks it against them. With an error it returns the spans that are sound.
func spansOf(ctx context.Context, adm *kadm.Client, topic string, from Cursor) (map[int32]span, error) {
	if topic == "" {
		return nil, errors.New("the topic name is empty")
	}
	if from.Topic != "" && from.Topic != topic {
		return nil, fmt.Errorf("the cursor is of topic %q", from.Topic)
	}
	return listBounds(ctx, adm, topic).spans(topic, math.MaxInt, from)
}

// bounds are the starts and ends of the partitions of topics, as brokers listed them.
type bounds struct {
	starts, ends      kadm.ListedOffsets
	startsErr, endErr error // of the brokers that did not answer
}

// listBounds lists them, and waits for leaders that move.
func listBounds(ctx context.Context, adm *kadm.Client, topics ...string) (b bounds) {
	var starting sync.WaitGroup // at once: over a slow link each answer costs time
	starting.Go(func() { b.starts, b.startsErr = client.ListOffsets(ctx, adm.ListStartOffsets, topics...) })
	// The end is the high watermark, not the last stable offset. So the span has every letter that
	// was acknowledged before, also those after the begin of an open transaction.
	b.ends, b.endErr = client.ListOffsets(ctx, adm.ListEndOffsets, topics...)
	starting.Wait()
	return b
}

// spans turns a cursor into spans of a topic that has so many partitions. With an error it returns
// the spans that are sound.
func (b bounds) spans(topic string, partitions int, from Cursor) (map[int32]span, error) {
	starts, noStart := offsets(b.starts, b.startsErr, topic, partitions)
	ends, noEnd := offsets(b.ends, b.endErr, topic, partitions)
	var unlisted error
	switch {
	case noStart != nil:
		unlisted = fmt.Errorf("list start offsets: %w", noStart)
	case noEnd != nil:
		unlisted = fmt.Errorf("list end offsets: %w", noEnd)
	}

	frozen := from.End
	var errs []error
	if len(frozen) == 0 {
		frozen = ends
		errs = append(errs, unlisted)
	}
	spans := make(map[int32]span, len(frozen))
	lacks := false // a broker's answer about a partition
	for _, p := range slices.Sorted(maps.Keys(frozen)) {
		s := span{at: from.At[p], end: frozen[p]}
		start, hasStart := starts[p]
		end, hasEnd := ends[p]
		switch {
		case unlisted != nil && (!hasStart || !hasEnd):
			lacks = true
			continue
		case !hasEnd:
			errs = append(errs, fmt.Errorf("the cursor has partition %d, which the topic does not have", p))
			continue
		case max(s.at, s.end) > end || s.at < 0 || s.end < 0:
			errs = append(errs, fmt.Errorf("the cursor is at %d and ends at %d in partition %d, which ends at %d: was the topic recreated?", s.at, s.end, p, end))
			continue
		}
		// Letters that expired meanwhile cannot be read. The start may be listed after the end.
		s.start = min(start, end)
		s.at = max(s.at, s.start)
		spans[p] = s
	}
	if lacks && len(from.End) > 0 {
		errs = append(errs, unlisted)
	}
	for p := range from.At {
		if _, ok := ends[p]; !ok && len(from.End) == 0 && unlisted == nil {
			errs = append(errs, fmt.Errorf("the cursor has partition %d, which the topic does not have", p))
		}
	}
	return spans, errors.Join(errs...)
}

// offsets returns the listed offsets of a topic's partitions, and the error about those that are
// not. missing is the error of brokers that did not answer. It is the topic's if the list has not
// all of its partitions.
func offsets(listed kadm.ListedOffsets, missing error, topic string, partitions int) (map[int32]int64, error) {
	of := listed[topic]
	if len(of) >= partitions {
		missing = nil
	}
	// kadm reports a missing topic by a partition -1.
	if none, ok := of[-1]; ok || len(of) == 0 {
		switch {
		case missing != nil:
			return nil, missing
		case none.Err == nil || errors.Is(none.Err, kerr.UnknownTopicOrPartition):
			return nil, errors.New("the topic does not exist")
		}
		return nil, none.Err
	}
	at := make(map[int32]int64, len(of))
	errs := []error{missing}
	for _, p := range slices.Sorted(maps.Keys(of)) {
		if o := of[p]; o.Err != nil {
			errs = append(errs, fmt.Errorf("partition %d: %w", p, o.Err))
		} else {
			at[p] = o.Offset
		}
	}
	return at, errors.Join(errs...)
}
