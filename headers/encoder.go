package headers

import (
	"time"

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
type memo struct {
	last [reserved.Count]struct {
		text   string
		number int64
		value  []byte // nil: none yet
	}
	// the last failure with a history of one entry, its fields, and whether others stood before
	failed  Meta
	attempt Attempt
	others  bool
	fields  []byte // nil: none yet
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
		m.last[k].text, m.last[k].value = s, e.values[e.n-1]
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
		m.last[k].number, m.last[k].value = n, e.values[e.n-1]
	}
}

// failure finds the fields of a failure. In a storm, many records fail for the first time with the
// same error in the same millisecond.
func (m *memo) failure(e *encoder, now *Meta, others bool) bool {
	if m == nil || m.fields == nil || len(now.History) != 1 || m.others != others {
		return false
	}
	a, b, was := &now.History[0], &m.attempt, &m.failed
	if now.Hops != was.Hops || now.Attempts != was.Attempts || now.Held != was.Held || now.ValueOmitted != was.ValueOmitted ||
		now.Reason != was.Reason || !sameMilli(now.FailedAt, was.FailedAt) || !sameMilli(now.FirstFailedAt, was.FirstFailedAt) ||
		now.Original.TopicID != was.Original.TopicID || now.Original.Topic != was.Original.Topic || now.Fingerprint != was.Fingerprint ||
		now.TraceParent != was.TraceParent || now.Version != was.Version || now.Environment != was.Environment || now.Host != was.Host ||
		a.Message != b.Message || a.Class != b.Class || a.Number != b.Number || a.Run != b.Run || a.Verdict != b.Verdict || !sameMilli(a.At, b.At) {
		return false
	}
	e.buf = append(e.buf, m.fields...)
	return true
}

func (m *memo) keepFailure(now *Meta, others bool, fields []byte) {
	if m != nil && len(now.History) == 1 {
		m.failed, m.attempt, m.others, m.fields = *now, now.History[0], others, fields
		m.failed.History, m.failed.Stack = nil, ""
	}
}

// sameMilli reports whether two times are written alike. The zero time is not written.
func sameMilli(a, b time.Time) bool { return millis(a) == millis(b) && a.IsZero() == b.IsZero() }
