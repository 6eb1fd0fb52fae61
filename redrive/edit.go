package redrive

import (
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
