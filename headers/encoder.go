package headers

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

// Encoder is Meta.Append for many records in a row, such as a storm of the same failure. It returns
// the same headers. A value that equals the previous call's shares its bytes instead of being
// encoded again, and a few large slices serve many records. So an encoder's headers retain more
// memory than their own while one of them is in use, and their bytes must not be changed.
//
// The zero value is ready to use. An Encoder must not be used concurrently.
type Encoder struct {
	e     encoder
	memo  memo
	slots []kgo.RecordHeader
}

// The sizes of an encoder's allocations.
const (
	chunkBytes   = 8 << 10
	chunkHeaders = 512
)

// Append returns what m.Append(h) returns.
func (c *Encoder) Append(m *Meta, h []kgo.RecordHeader) []kgo.RecordHeader {
	c.e.n, c.e.memo = 0, &c.memo
	c.e.meta(m)
	n := len(h) - countReserved(h) + c.e.n
	if len(c.slots) < n {
		c.slots = make([]kgo.RecordHeader, max(n, chunkHeaders))
	}
	out := c.slots[:0:n]
	c.slots = c.slots[n:]
	return c.e.headers(out, h)
}

// memo has the last value of each header, and its encoding. A nil memo is empty.
type memo [reserved.Count]struct {
	text   string
	number int64
	topic  [16]byte
	value  []byte // nil: none yet
}

func (m *memo) string(e *encoder, k reserved.Key, s string) bool {
	if m == nil || m[k].value == nil || m[k].text != s {
		return false
	}
	e.put(k, m[k].value)
	return true
}

func (m *memo) keepString(e *encoder, k reserved.Key, s string) {
	if m != nil {
		m[k].text, m[k].value = s, e.values[e.n-1]
	}
}

func (m *memo) number(e *encoder, k reserved.Key, n int64) bool {
	if m == nil || m[k].value == nil || m[k].number != n {
		return false
	}
	e.put(k, m[k].value)
	return true
}

func (m *memo) keepNumber(e *encoder, k reserved.Key, n int64) {
	if m != nil {
		m[k].number, m[k].value = n, e.values[e.n-1]
	}
}

func (m *memo) id(e *encoder, id [16]byte) bool {
	if m == nil || m[reserved.OriginalTopicID].value == nil || m[reserved.OriginalTopicID].topic != id {
		return false
	}
	e.put(reserved.OriginalTopicID, m[reserved.OriginalTopicID].value)
	return true
}

func (m *memo) keepID(e *encoder, id [16]byte) {
	if m != nil {
		m[reserved.OriginalTopicID].topic, m[reserved.OriginalTopicID].value = id, e.values[e.n-1]
	}
}
