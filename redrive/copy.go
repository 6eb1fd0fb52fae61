package redrive

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
)

// originalTime is when a letter's record was first written.
func originalTime(l *dlq.Letter) time.Time {
	if at := l.Meta.Original.Timestamp; !at.IsZero() {
		return at
	}
	return l.Record.Timestamp
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
