package redrive

import (
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Edit changes records on the way back; the letters stay as they are, and the ledger
// says that the copy was edited. Headers are unset first, then set.
type Edit struct {
	// Set are headers to set: each replaces all of its key. Unset are keys of headers to take off.
	// siding's own can't be edited.
	Set   []kgo.RecordHeader
	Unset []string
	// Patch is a JSON merge patch (RFC 7396) of the value. A letter to whose value it can't be
	// applied is not sent.
	Patch []byte
	// Value is a new value, for a run of one letter; an empty one is a value too.
	Value []byte
}

// Apply gives the headers, the user's alone, and the value that a record goes back with. What it is
// given stays as it is. A value that can't be changed as asked is an error, and then the record has
// to stay where it is. mergePatch is [Config.MergePatch].
func (e *Edit) Apply(h []kgo.RecordHeader, value []byte, mergePatch func(value, patch []byte) ([]byte, error)) ([]kgo.RecordHeader, []byte, error) {
	value, err := e.valueOf(value, mergePatch)
	if err != nil {
		return nil, nil, err
	}
	return e.headersOf(h), value, nil
}

// headersOf edits the user's headers. A header that is set takes the place of the first of its key;
// a new one comes last.
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

// IsZero reports whether nothing is changed.
func (e Edit) IsZero() bool { return !e.headers() && !e.value() }

func (e *Edit) headers() bool { return len(e.Set)+len(e.Unset) > 0 }

func (e *Edit) value() bool { return e.Patch != nil || e.Value != nil }

// what is edited, in the ledger's words.
func (e *Edit) what() (words []string) {
	if e.headers() {
		words = append(words, "headers")
	}
	if e.value() {
		words = append(words, "value")
	}
	return words
}

func (e *Edit) validate(patch bool) error {
	var errs []error
	for _, h := range e.Set {
		if h.Key == "" || headers.Reserved(h.Key) {
			errs = append(errs, fmt.Errorf("header %q can't be set", h.Key))
		}
	}
	for _, key := range e.Unset {
		if headers.Reserved(key) {
			errs = append(errs, fmt.Errorf("header %q can't be unset", key))
		}
	}
	if e.Patch != nil && e.Value != nil {
		errs = append(errs, errors.New("there are a patch and a new value: choose one"))
	}
	if e.Patch != nil && !patch {
		errs = append(errs, errors.New("there is a patch, and Config.MergePatch is nil"))
	}
	if len(e.Value)+len(e.Patch) > pieceSize {
		errs = append(errs, fmt.Errorf("the new value or patch has more than %d bytes, which a run can't keep", pieceSize))
	}
	return errors.Join(errs...)
}
