package forward

// Keeps users' franz-go hooks from changing the headers of a copy.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// HeaderLender is a producer's hook that runs before the user's. It gives them a clone of the
// headers, because a hook may also assign to the elements.
type HeaderLender struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (HeaderLender) OnProduceRecordBuffered(r *kgo.Record) { r.Headers = slices.Clone(r.Headers) }

// HeaderKeeper is a producer's hook that runs after the user's. It restores a copy's own headers.
type HeaderKeeper struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (HeaderKeeper) OnProduceRecordBuffered(r *kgo.Record) {
	if c := copyOf(r); c != nil {
		r.Headers = c.Headers()
	}
}
