package redrive

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

// Selection says which letters of which dead-letter topic are brought back, where
// to, and how changed.
type Selection struct {
	// Topic is the dead-letter topic.
	Topic string
	// Filter selects among its open letters; zero selects all.
	Filter dlq.Filter
	// Target is where they go.
	Target Target
	// MaxRedrives is how often a record is brought back, over all runs; 3 by default, any number of times when negative. One that
	// was brought back as often stays.
	MaxRedrives int
	// Edit changes them on the way.
	Edit Edit
}

const defaultMaxRedrives = 3

// Target is where letters are brought back to. The zero value is the failing group's
// first retry topic, due at once: only that group sees the records again.
type Target struct {
	// Topic is another target: the source topic, or any that is no sibling. All groups that read it will see the records; of what
	// goes to another one than the source nobody tells what becomes of it ([Counts.Unfollowed]). It may as well be a retry topic of the source that the failing groups read, another one than their first.
	Topic string `json:"topic,omitempty"`
	// Wait lets a run wait for a group without members instead of refusing.
	Wait bool `json:"wait,omitempty"`
	// Force brings records back to a compacted source, or to one whose retry topics seem to be named otherwise than Config.Naming says.
	Force bool `json:"force,omitempty"`
	// KeepTimestamp gives the copies the timestamp of the record as it was first read, on a target that is named.
	KeepTimestamp bool `json:"keepTimestamp,omitempty"`
}

// Edit changes records on the way back; the letters stay as they are, and the ledger
// says that the copy was edited. Headers are unset first, then set.
type Edit struct {
	// Set are headers to set: each replaces all of its key. Unset are keys of headers to take off. siding's own can't be edited.
	Set   []kgo.RecordHeader
	Unset []string
	// Patch is a JSON merge patch (RFC 7396) of the value. A letter to whose value it can't be applied is not sent.
	Patch []byte
	// Value is a new value, for a run of one letter; an empty one is a value too.
	Value []byte
}

// IsZero reports whether nothing is changed.
func (e Edit) IsZero() bool { return !e.headers() && !e.value() }

func (e *Edit) headers() bool { return len(e.Set)+len(e.Unset) > 0 }
func (e *Edit) value() bool   { return e.Patch != nil || e.Value != nil }

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
