package headers

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// Append returns a new slice with the headers of h, without the reserved ones, followed by those
// of m. It does not change h or its array. It allocates twice: the slice, and one array for all
// values.
//
// Reason decides which headers are written. Without a reason the result is for a retry topic and
// has dlq-not-before and dlq-held. With a reason it is for a dead letter and has dlq-reason,
// dlq-error-stack and dlq-value-omitted.
//
// Long values are cut to their limits: the message and the stack at the end, the history at its
// oldest entries. Text becomes valid UTF-8, classes become clean, an invalid fingerprint is
// omitted, and counts and times are clamped. So Parse accepts the result if Original, Group and
// Redrive hold names and positions that Kafka allows.
func (m *Meta) Append(h []kgo.RecordHeader) []kgo.RecordHeader {
	e := encoder{buf: make([]byte, 0, m.estimate())}
	e.meta(m)
	return e.headers(make([]kgo.RecordHeader, 0, len(h)-countReserved(h)+e.n), h)
}

// AppendSource is Append for a copy that a redrive writes to a source topic. It writes the headers
// of Redrive, FirstFailedAt and History, which [ParseSource] reads, and none if Redrive is zero.
// FirstFailedAt and History are written, and read, only beside [Redrive].At.
func (m *Meta) AppendSource(h []kgo.RecordHeader) []kgo.RecordHeader {
	redriven := Meta{Redrive: m.Redrive, FirstFailedAt: m.FirstFailedAt, History: m.History}
	e := encoder{buf: make([]byte, 0, redriven.estimate())}
	if m.Redrive.ID != "" {
		e.redrive(&m.Redrive)
		if !m.Redrive.At.IsZero() {
			e.time(reserved.FirstFailedAt, m.FirstFailedAt)
			e.history(m.writtenHistory())
		}
	}
	return e.headers(make([]kgo.RecordHeader, 0, len(h)-countReserved(h)+e.n), h)
}

// estimate returns the approximate size of all values: enough for one allocation in most cases, and
// hardly more than the allocator would round up to.
func (m *Meta) estimate() int {
	const numbers = 22 + // topic id
		2*10 + 13 + // partition, offset, timestamp
		2*3 + // attempts, hops
		3*13 // times
	n := numbers + len(m.Original.Topic) + len(m.Group) + min(len(m.Class), classify.MaxClass) +
		len(m.Fingerprint) + min(len(m.Message), MaxMessage) +
		min(len(m.TraceParent), maxNote) + min(len(m.Version), maxNote) +
		min(len(m.Environment), maxNote) + min(len(m.Host), maxNote) + m.Redrive.estimate()
	if m.Reason != "" {
		n += min(len(m.Stack), MaxStack) + len(m.Reason)
	}
	for i := range m.History {
		n += len(m.History[i].Class) + 32 + min(len(m.History[i].Message), MaxHistoryMessage)
	}
	return n
}

func (r *Redrive) estimate() int {
	if r.ID == "" {
		return 0
	}
	n := min(len(r.ID), maxRedriveID) + len(r.From.Topic) + 24 + 13 // time
	if r.Original.Topic != "" {
		n += len(r.Original.Topic) + 24
	}
	return n
}

// encoder collects values. The number of headers is known at the end, so that their slice is no
// longer than necessary.
type encoder struct {
	buf    []byte // values are cut from it
	n      int
	keys   [reserved.Count]reserved.Key
	values [reserved.Count][]byte
	memo   *memo // nil: encode everything
}

// meta adds the headers of m.
func (e *encoder) meta(m *Meta) {
	if o := &m.Original; o.Topic != "" {
		e.raw(reserved.OriginalTopic, o.Topic)
		e.topicID(o.TopicID)
		e.number(reserved.OriginalPartition, int64(o.Partition))
		e.number(reserved.OriginalOffset, o.Offset)
		if !o.Timestamp.IsZero() {
			e.number(reserved.OriginalTimestamp, o.Timestamp.UnixMilli())
		}
	}
	e.raw(reserved.Group, m.Group)
	e.number(reserved.Attempts, int64(clamp(m.Attempts)))
	e.class(reserved.ErrorClass, m.Class)
	if validFingerprint(m.Fingerprint) {
		e.raw(reserved.ErrorFingerprint, m.Fingerprint)
	}
	e.text(reserved.ErrorMessage, m.Message, MaxMessage)
	if m.Reason != "" {
		e.text(reserved.ErrorStack, m.Stack, MaxStack)
		e.class(reserved.FailureReason, string(m.Reason))
	}
	e.time(reserved.FirstFailedAt, m.FirstFailedAt)
	e.time(reserved.FailedAt, m.FailedAt)
	if m.Reason == "" {
		e.time(reserved.NotBefore, m.NotBefore)
		e.flag(reserved.Held, m.Held)
	}
	if m.Hops > 0 {
		e.number(reserved.Hops, int64(clamp(m.Hops)))
	}
	e.history(m.writtenHistory())
	e.text(reserved.TraceParent, m.TraceParent, maxNote)
	e.text(reserved.ConsumerVersion, m.Version, maxNote)
	e.text(reserved.Environment, m.Environment, maxNote)
	e.text(reserved.Host, m.Host, maxNote)
	e.redrive(&m.Redrive)
	if m.Reason != "" {
		e.flag(reserved.ValueOmitted, m.ValueOmitted)
	}
}

// add turns the bytes appended to buf since start into a header with key k. Its capacity ends where
// the next value starts, so that appending to one value cannot reach another.
func (e *encoder) add(k reserved.Key, start int) {
	end := len(e.buf)
	e.put(k, e.buf[start:end:end])
}

func (e *encoder) put(k reserved.Key, value []byte) {
	e.keys[e.n], e.values[e.n] = k, value
	e.n++
}

// headers appends the user's headers among h and those that were added to out.
func (e *encoder) headers(out, h []kgo.RecordHeader) []kgo.RecordHeader {
	out = appendUser(out, h)
	for i := range e.n {
		out = append(out, kgo.RecordHeader{Key: e.keys[i].String(), Value: e.values[i]})
	}
	return out
}

func (e *encoder) raw(k reserved.Key, s string) {
	if s == "" || e.memo.string(e, k, s) {
		return
	}
	start := e.room(len(s))
	e.buf = append(e.buf, s...)
	e.add(k, start)
	e.memo.keepString(e, k, s)
}

func (e *encoder) text(k reserved.Key, s string, limit int) {
	if s == "" || e.memo.string(e, k, s) {
		return
	}
	start := e.room(min(len(s), limit) + utf8.UTFMax)
	e.buf = appendText(e.buf, s, limit)
	e.add(k, start)
	e.memo.keepString(e, k, s)
}

func (e *encoder) class(k reserved.Key, s string) { e.raw(k, classify.CleanClass(s)) }

func (e *encoder) number(k reserved.Key, n int64) {
	if e.memo.number(e, k, n) {
		return
	}
	start := e.room(20)
	e.buf = strconv.AppendInt(e.buf, n, 10)
	e.add(k, start)
	e.memo.keepNumber(e, k, n)
}

func (e *encoder) time(k reserved.Key, t time.Time) {
	if !t.IsZero() {
		e.number(k, millis(t))
	}
}

func (e *encoder) flag(k reserved.Key, set bool) {
	if set {
		e.raw(k, "true")
	}
}

func (e *encoder) topicID(id [16]byte) {
	if id == ([16]byte{}) || e.memo.id(e, id) {
		return
	}
	start := e.room(22)
	e.buf = base64.RawURLEncoding.AppendEncode(e.buf, id[:])
	e.add(reserved.OriginalTopicID, start)
	e.memo.keepID(e, id)
}

func (e *encoder) redrive(r *Redrive) {
	if r.ID != "" {
		e.text(reserved.RedriveID, r.ID, maxRedriveID)
		e.number(reserved.RedriveCount, int64(clamp(r.Count)))
		start := e.room(len(r.From.Topic) + 32)
		e.buf = r.From.append(e.buf)
		e.add(reserved.RedriveFrom, start)
		if o := &r.Original; o.Topic != "" {
			start := e.room(len(o.Topic) + 32)
			e.buf = o.append(e.buf)
			e.add(reserved.RedriveOriginal, start)
		}
		e.time(reserved.RedriveAt, r.At)
		if r.MaxAttempts > 0 {
			e.number(reserved.RedriveMaxAttempts, int64(clamp(r.MaxAttempts)))
		}
	}
}

// room ensures that n bytes fit, and returns where they begin. Without a memo there is one array
// for all values. With a memo there are several arrays, and a value never moves, since other
// headers share it.
func (e *encoder) room(n int) int {
	if e.memo != nil && cap(e.buf)-len(e.buf) < n {
		e.buf = make([]byte, 0, max(n, chunkBytes))
	}
	return len(e.buf)
}

// appendText appends at most limit bytes of s as valid UTF-8.
func appendText(b []byte, s string, limit int) []byte {
	s = cut(s, limit)
	if utf8.ValidString(s) {
		return append(b, s...)
	}
	end := len(b) + limit
	for _, r := range s { // RuneError for invalid UTF-8
		if len(b)+utf8.RuneLen(r) > end {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// cut shortens s to limit bytes without splitting a character.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[:max(limit, 0)]
	for back := 1; back < utf8.UTFMax && back <= len(s); back++ {
		if c := s[len(s)-back]; utf8.RuneStart(c) {
			if !utf8.FullRuneInString(s[len(s)-back:]) {
				s = s[:len(s)-back]
			}
			break
		}
	}
	return s
}

func clamp(n int) int { return min(max(n, 0), MaxAttempts) }

func millis(t time.Time) int64 { return min(max(t.UnixMilli(), 0), reserved.MaxMillis) }
