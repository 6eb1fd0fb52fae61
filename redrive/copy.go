package redrive

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// originalTime is when a letter's record was first written.
func originalTime(l *dlq.Letter) time.Time {
	if at := l.Meta.Original.Timestamp; !at.IsZero() {
		return at
	}
	return l.Record.Timestamp
}

// dueAtOnce is when a copy in a retry topic is due: in the past by every clock. Whose clock is wrong by hours, the operator's or the
// consumer's, nobody waits for it.
var dueAtOnce = time.UnixMilli(0)

// copyOf is a letter as it goes to its target. On the failing group's tier it is a record that has yet to fail there, due at once,
// with its origin; on any other topic it is the user's record, with the mark of the run. On its source the mark says where the record was
// first read. So the idempotency key stays the same on both. On a source that was recreated since, and where that is not known, it does
// not: that place is another record's there.
func (h *held) copyOf(l *dlq.Letter, user []kgo.RecordHeader, value []byte, topic string, partition int32) *kgo.Record {
	mark := headers.Redrive{ID: h.rec.ID, Count: l.Meta.Redrive.Count + 1, From: headers.Position{Topic: l.Record.Topic, Partition: l.Record.Partition, Offset: l.Record.Offset}}
	mark.Original = l.Meta.Redrive.Original
	out := &kgo.Record{Topic: topic, Partition: partition, Key: l.Record.Key, Value: value}
	if h.rec.toTier() {
		m := headers.Meta{
			Original: l.Meta.Original, Group: l.Meta.Group, NotBefore: dueAtOnce, Redrive: mark, Hops: 1, TraceParent: l.Meta.TraceParent,
			Version: l.Meta.Version, Environment: l.Meta.Environment, Host: l.Meta.Host,
		}
		out.Headers = m.Append(user)
		return out
	}
	if mark.Original.Topic == "" {
		mark.Original = l.Meta.Original
	}
	if mark.Original.Topic != topic || l.Meta.Original.TopicID != h.targetID || h.targetID == ([16]byte{}) {
		mark.Original = headers.Position{} // nobody believes it there, or it is another record's
	}
	out.Headers = mark.Append(user)
	if h.rec.Target.KeepTimestamp {
		out.Timestamp = originalTime(l)
	}
	return out
}

// Apply gives the headers, the user's alone, and the value that a record goes back with. What it is given stays as it is. A value that
// can't be changed as asked is an error, and then the record has to stay where it is. mergePatch is [Config.MergePatch].
func (e *Edit) Apply(h []kgo.RecordHeader, value []byte, mergePatch func(value, patch []byte) ([]byte, error)) ([]kgo.RecordHeader, []byte, error) {
	value, err := e.valueOf(value, mergePatch)
	if err != nil {
		return nil, nil, err
	}
	return e.headersOf(h), value, nil
}

// headersOf edits the user's headers. A header that is set takes the place of the first of its key; a new one comes last.
func (e *Edit) headersOf(h []kgo.RecordHeader) []kgo.RecordHeader {
	if !e.headers() {
		return h
	}
	h = slices.DeleteFunc(slices.Clone(h), func(h kgo.RecordHeader) bool { return slices.Contains(e.Unset, h.Key) })
	for _, set := range e.Set {
		is := func(h kgo.RecordHeader) bool { return h.Key == set.Key }
		i := slices.IndexFunc(h, is)
		if i < 0 {
			h = append(h, set)
			continue
		}
		h[i] = set
		h = append(h[:i+1], slices.DeleteFunc(h[i+1:], is)...)
	}
	return h
}

// valueOf edits a value.
func (e *Edit) valueOf(value []byte, patch func(value, patch []byte) ([]byte, error)) ([]byte, error) {
	switch {
	case e.Value != nil:
		return e.Value, nil
	case e.Patch == nil:
		return value, nil
	case value == nil:
		return nil, errors.New("patch: the value is null (a tombstone)")
	}
	edited, err := patch(value, e.Patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return edited, nil
}
