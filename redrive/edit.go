package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/mergepatch"
)

// Edit changes the copies of redriven letters. The letters stay unchanged, and the ledger records
// that a copy was edited. Apply unsets headers first, and then sets headers.
type Edit struct {
	// Set are the headers to set; each replaces all headers of its key. Unset are the keys of
	// headers to remove. siding's own headers cannot be edited.
	Set   []kgo.RecordHeader
	Unset []string
	// Patch is a JSON merge patch (RFC 7396) for the value. It has to be an object, and so has the
	// value: for anything else the RFC replaces the whole value. Members that the patch does not
	// name keep their order and spelling. A run skips a letter if the patch cannot be applied to
	// its value.
	Patch []byte
	// Value is a new value, for a run of one letter; nil keeps the value, and an empty slice is a
	// value.
	Value []byte

	written []byte // is Value, as the letter's schema writes it; nil if there is none
}

// newValue is the new value as it is sent; nil keeps the value.
func (e *Edit) newValue() []byte {
	if e.written != nil {
		return e.written
	}
	return e.Value
}

// Apply returns the edited headers and value; h has the user's headers only. It does not modify h
// or value. After an error the letter must not be sent.
func (e *Edit) Apply(h []kgo.RecordHeader, value []byte) ([]kgo.RecordHeader, []byte, error) {
	value, err := e.valueOf(value)
	if err != nil {
		return nil, nil, err
	}
	return e.headersOf(h), value, nil
}

// ApplyBy is [Edit.Apply] to a record's headers and value. If values, which may be nil, knows the
// schema of the value, the edit is one of its JSON, and the result is written by the same schema. A
// new value that begins with a byte of 0, as a schema's number does, is taken as it is.
func (e *Edit) ApplyBy(ctx context.Context, values Values, r *kgo.Record) ([]kgo.RecordHeader, []byte, error) {
	value, err := e.valueBy(ctx, values, r)
	if err != nil {
		return nil, nil, err
	}
	return e.headersOf(headers.Strip(r.Headers)), value, nil
}

// valueBy edits the value of a record.
func (e *Edit) valueBy(ctx context.Context, values Values, r *kgo.Record) ([]byte, error) {
	if values == nil || !e.value() || len(e.Value) > 0 && e.Value[0] == 0 {
		return e.valueOf(r.Value)
	}
	text, err := values.DecodeValue(ctx, r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the value: %w", err)
	case text == nil:
		return e.valueOf(r.Value)
	}
	if text, err = e.valueOf(text); err != nil {
		return nil, err
	}
	return values.EncodeValue(ctx, r, text)
}

// headersOf edits the user's headers. A set header takes the place of the first of its key; a
// header with a new key comes last.
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
func (e *Edit) valueOf(value []byte) ([]byte, error) {
	switch {
	case e.Value != nil:
		return e.Value, nil
	case e.Patch == nil:
		return value, nil
	case value == nil:
		return nil, errors.New("patch: the value is null (a tombstone)")
	}
	edited, err := mergepatch.ApplyToObject(value, e.Patch)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return edited, nil
}

// IsZero reports whether the edit changes nothing.
func (e Edit) IsZero() bool { return !e.headers() && !e.value() }

func (e *Edit) headers() bool { return len(e.Set)+len(e.Unset) > 0 }

func (e *Edit) value() bool { return e.Patch != nil || e.Value != nil }

// what lists the edited parts for the ledger.
func (e *Edit) what() (words []string) {
	if e.headers() {
		words = append(words, "headers")
	}
	if e.value() {
		words = append(words, "value")
	}
	return words
}

func (e *Edit) validate() error {
	var errs []error
	for _, h := range e.Set {
		if h.Key == "" || headers.Reserved(h.Key) {
			errs = append(errs, fmt.Errorf("header %q can't be set: its name is empty, or reserved for siding", h.Key))
		}
	}
	for _, key := range e.Unset {
		if headers.Reserved(key) {
			errs = append(errs, fmt.Errorf("header %q can't be unset: its name is reserved for siding", key))
		}
	}
	if e.Patch != nil && e.Value != nil {
		errs = append(errs, errors.New("Edit.Patch and Edit.Value are both set: choose one"))
	}
	if e.Patch != nil {
		if err := mergepatch.CheckObject(e.Patch); err != nil {
			errs = append(errs, fmt.Errorf("Edit.Patch: the patch %w", err))
		}
	}
	if len(e.Value)+len(e.Patch) > pieceSize {
		errs = append(errs, fmt.Errorf("the new value or patch has more than %d bytes, which a run can't keep", pieceSize))
	}
	return errors.Join(errs...)
}

// Values reads and writes values that a schema describes, so that an edit is one of their JSON. Its
// methods can be used concurrently.
type Values interface {
	// DecodeValue returns what the value of a record says as JSON. It is nil without an error if no
	// schema describes the value: then the value itself is edited.
	DecodeValue(ctx context.Context, r *kgo.Record) ([]byte, error)
	// EncodeValue returns the value that JSON describes, by the schema of the record's own value.
	// JSON that does not fit is an error.
	EncodeValue(ctx context.Context, r *kgo.Record, json []byte) ([]byte, error)
}
