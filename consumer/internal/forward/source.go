package forward

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
)

// Source is a record as it was read, which makes its copies. One worker uses it, for one record
// after another; it is not safe for concurrent use. The zero value is ready.
type Source struct {
	Key, Value []byte
	Headers    []kgo.RecordHeader // the user's
	Offset     int64

	slab  []Copy // room for the next copies
	grown int
	enc   *headers.Encoder // nil until the worker forwards
}

// encoders go from worker to worker, because the records of a storm have most of their headers in
// common.
var encoders = sync.Pool{New: func() any { return new(headers.Encoder) }}

// Copy makes the record's copy for topic, with m in its headers. now is its timestamp, so that kgo
// need not read the clock.
func (s *Source) Copy(from Origin, topic string, m *headers.Meta, now time.Time) *Copy {
	if s.enc == nil {
		s.enc = encoders.Get().(*headers.Encoder)
	}
	c := s.room()
	c.rec = kgo.Record{Topic: topic, Key: s.Key, Value: s.Value, Headers: s.enc.Append(m, s.Headers), Timestamp: now}
	c.from, c.offset = from, s.Offset
	return c
}

// Release gives the encoder back to other workers.
func (s *Source) Release() {
	if s.enc != nil {
		encoders.Put(s.enc)
		s.enc = nil
	}
}

// room returns memory for a copy. It allocates one at first, then more at a time: a worker that
// forwards once most likely forwards again.
func (s *Source) room() *Copy {
	if len(s.slab) == 0 {
		s.grown = min(2*s.grown+1, 31)
		s.slab = make([]Copy, s.grown)
	}
	c := &s.slab[0]
	s.slab = s.slab[1:]
	return c
}
