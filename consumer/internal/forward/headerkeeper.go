package forward

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// HeaderLender is a producer's hook before those of the user. It gives them headers of their own: a
// hook may assign to the elements, not only append.
type HeaderLender struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (HeaderLender) OnProduceRecordBuffered(r *kgo.Record) { r.Headers = slices.Clone(r.Headers) }

// HeaderKeeper is a producer's hook behind those of the user. It puts a copy's headers back as they
// were made.
type HeaderKeeper struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (HeaderKeeper) OnProduceRecordBuffered(r *kgo.Record) {
	if c := copyOf(r); c != nil {
		r.Headers = c.Headers()
	}
}
