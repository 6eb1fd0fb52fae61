package consumer

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// copySource is a record as it was read: what a copy of it is made from.
type copySource struct {
	key, value []byte
	headers    []kgo.RecordHeader // the user's
	timestamp  time.Time
	offset     int64
	redrive    headers.Redrive // that counts on a source record

	traceParent string // of the attempt that failed

	slab  []forward // room for the next copies
	grown int
	enc   *headers.Encoder // of a worker that forwarded already
}

// encoders go from worker to worker: a storm's records have most of their headers in common.
var encoders = sync.Pool{New: func() any { return new(headers.Encoder) }}

// encode makes the headers of a copy.
func (n *copySource) encode(m *headers.Meta) []kgo.RecordHeader {
	if n.enc == nil {
		n.enc = encoders.Get().(*headers.Encoder)
	}
	return n.enc.Append(m, n.headers)
}

// release gives back what others can use.
func (n *copySource) release() {
	if n.enc != nil {
		encoders.Put(n.enc)
		n.enc = nil
	}
}

// forward returns room for a copy. A worker that forwards once will most likely do so again.
func (n *copySource) forward() *forward {
	if len(n.slab) == 0 {
		n.slab = make([]forward, n.room())
	}
	fw := &n.slab[0]
	n.slab = n.slab[1:]
	return fw
}

// room is how many copies to make room for: one at first, then more at a time.
func (n *copySource) room() int {
	n.grown = min(2*n.grown+1, 31)
	return n.grown
}
