package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// headerLender gives the user's hooks headers of their own: a hook may assign to the elements, not only append.
type headerLender struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (headerLender) OnProduceRecordBuffered(r *kgo.Record) { r.Headers = slices.Clone(r.Headers) }

// headerKeeper puts the copy's headers back as they were written.
type headerKeeper struct{}

// OnProduceRecordBuffered implements kgo.HookProduceRecordBuffered.
func (headerKeeper) OnProduceRecordBuffered(r *kgo.Record) {
	if fw, ok := r.Context.Value(forwardKey{}).(*forward); ok {
		r.Headers = fw.headers()
	}
}
