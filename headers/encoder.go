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
	if c.e.memo = &c.memo; c.memo.failed.repeats(m) {
		c.e.repeat(m)
	} else {
		c.e.n = 0
		c.e.meta(m)
	}
	n := len(h) - countReserved(h) + c.e.n
	if len(c.slots) < n {
		c.slots = make([]kgo.RecordHeader, max(n, chunkHeaders))
	}
	out := c.slots[:0:n]
	c.slots = c.slots[n:]
	return c.e.headers(out, h)
}

// memo has the last value of each header, and its encoding. A nil memo is empty.
type memo struct {
	last [reserved.Count]struct {
		text   string
		number int64
		value  []byte // nil: none yet
	}
	failed lastFailure
}

func (m *memo) string(e *encoder, k reserved.Key, s string) bool {
	if m == nil || m.last[k].value == nil || m.last[k].text != s {
		return false
	}
	e.put(k, m.last[k].value)
	return true
}

func (m *memo) keepString(e *encoder, k reserved.Key, s string) {
	if m != nil {
		m.last[k].text, m.last[k].value = s, e.each[e.n-1].Value
	}
}

func (m *memo) number(e *encoder, k reserved.Key, n int64) bool {
	if m == nil || m.last[k].value == nil || m.last[k].number != n {
		return false
	}
	e.put(k, m.last[k].value)
	return true
}

func (m *memo) keepNumber(e *encoder, k reserved.Key, n int64) {
	if m != nil {
		m.last[k].number, m.last[k].value = n, e.each[e.n-1].Value
	}
}

// repeat is meta for a failure that repeats the last one.
func (e *encoder) repeat(m *Meta) {
	all := e.n
	for e.n = 0; e.n < all; {
		switch k := e.keys[e.n]; k {
		case reserved.OriginalOffset:
			e.number(k, m.Original.Offset)
		case reserved.NotBefore:
			e.time(k, m.NotBefore)
		case reserved.Meta:
			e.fields(m, e.memo.failed.fields)
		default:
			e.n++
		}
	}
}
