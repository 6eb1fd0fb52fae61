package headers

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

// Append returns a new slice with the headers of h, without the reserved ones
// among them, and then those of m. h itself is neither changed nor written
// behind. It allocates twice: the slice, and one array for all values.
//
// Reason decides which headers are written. Without one it is a copy for a
// retry topic, with dlq-not-before and dlq-held; with one it is a dead letter,
// with dlq-reason, dlq-error-stack and dlq-value-omitted.
//
// What is longer than its limit is cut: the message and the stack at the end,
// the history at its oldest entries. Text becomes valid UTF-8, classes become
// clean, a fingerprint that is none is left out, and counts and times are
// brought within bounds: Parse accepts the result wherever Original, Group and
// Redrive name things that Kafka can have.
func (m *Meta) Append(h []kgo.RecordHeader) []kgo.RecordHeader {
	var e encoder
	e.out = appendUser(make([]kgo.RecordHeader, 0, len(h)+int(numKeys)-1), h)
	e.buf = make([]byte, 0, m.bound())

	if o := &m.Original; o.Topic != "" {
		e.raw(OriginalTopic, o.Topic)
		e.topicID(OriginalTopicID, o.TopicID)
		e.number(OriginalPartition, int64(o.Partition))
		e.number(OriginalOffset, o.Offset)
		if !o.Timestamp.IsZero() {
			e.number(OriginalTimestamp, o.Timestamp.UnixMilli())
		}
	}
	e.raw(Group, m.Group)
	e.number(Attempts, int64(clamp(m.Attempts)))
	e.class(ErrorClass, m.Class)
	if validFingerprint(m.Fingerprint) {
		e.raw(ErrorFingerprint, m.Fingerprint)
	}
	e.text(ErrorMessage, m.Message, MaxMessage)
	if m.Reason != "" {
		e.text(ErrorStack, m.Stack, MaxStack)
		e.class(FailureReason, string(m.Reason))
	}
	e.time(FirstFailedAt, m.FirstFailedAt)
	e.time(FailedAt, m.FailedAt)
	if m.Reason == "" {
		e.time(NotBefore, m.NotBefore)
		e.flag(Held, m.Held)
	}
	if m.Hops > 0 {
		e.number(Hops, int64(clamp(m.Hops)))
	}
	e.history(m.writtenHistory())
	e.text(TraceParent, m.TraceParent, maxNote)
	e.text(ConsumerVersion, m.Version, maxNote)
	e.text(Environment, m.Environment, maxNote)
	e.text(Host, m.Host, maxNote)
	e.redrive(&m.Redrive)
	if m.Reason != "" {
		e.flag(ValueOmitted, m.ValueOmitted)
	}
	return e.out
}

// Append returns a new slice with the headers of h, without the reserved ones
// among them, and then those of r: what redrive writes to a source topic, where
// nothing else of a dead letter's story belongs. h itself is not changed.
func (r *Redrive) Append(h []kgo.RecordHeader) []kgo.RecordHeader {
	var e encoder
	e.out = appendUser(make([]kgo.RecordHeader, 0, len(h)+3), h)
	e.buf = make([]byte, 0, r.bound())
	e.redrive(r)
	return e.out
}

// bound is at least as many bytes as the values take; a little more is
// harmless.
func (m *Meta) bound() int {
	const numbers = 22 + // topic id
		11 + 20 + 20 + // partition, offset, timestamp
		7 + 7 + // attempts, hops
		3*15 + // times
		2*4 // flags
	n := numbers + len(m.Original.Topic) + len(m.Group) + min(len(m.Class), classify.MaxClass) +
		len(m.Fingerprint) + min(len(m.Message), MaxMessage) +
		min(len(m.TraceParent), maxNote) + min(len(m.Version), maxNote) +
		min(len(m.Environment), maxNote) + min(len(m.Host), maxNote) + m.Redrive.bound()
	if m.Reason != "" {
		n += min(len(m.Stack), MaxStack) + len(m.Reason)
	}
	for i := range m.History {
		n += m.History[i].bound()
	}
	return n
}

func (r *Redrive) bound() int {
	if r.ID == "" {
		return 0
	}
	return min(len(r.ID), maxRedriveID) + 7 + len(r.From.Topic) + 1 + 11 + 1 + 20
}

// encoder collects headers whose values share one array.
type encoder struct {
	out []kgo.RecordHeader
	buf []byte
}

// add makes what was appended to buf since start a header. Its capacity ends
// where the next value starts, so that appending to one can't reach another.
func (e *encoder) add(key string, start int) {
	e.out = append(e.out, kgo.RecordHeader{Key: key, Value: e.buf[start:len(e.buf):len(e.buf)]})
}

func (e *encoder) raw(key, s string) {
	if s == "" {
		return
	}
	start := len(e.buf)
	e.buf = append(e.buf, s...)
	e.add(key, start)
}

func (e *encoder) text(key, s string, limit int) {
	if s == "" {
		return
	}
	start := len(e.buf)
	e.buf = appendText(e.buf, s, limit)
	e.add(key, start)
}

func (e *encoder) class(key, s string) { e.raw(key, classify.CleanClass(s)) }

func (e *encoder) number(key string, n int64) {
	start := len(e.buf)
	e.buf = strconv.AppendInt(e.buf, n, 10)
	e.add(key, start)
}

func (e *encoder) time(key string, t time.Time) {
	if !t.IsZero() {
		e.number(key, millis(t))
	}
}

func (e *encoder) flag(key string, set bool) {
	if set {
		e.raw(key, "true")
	}
}

func (e *encoder) topicID(key string, id [16]byte) {
	if id == ([16]byte{}) {
		return
	}
	start := len(e.buf)
	e.buf = base64.RawURLEncoding.AppendEncode(e.buf, id[:])
	e.add(key, start)
}

func (e *encoder) redrive(r *Redrive) {
	if r.ID == "" {
		return
	}
	e.text(RedriveID, r.ID, maxRedriveID)
	e.number(RedriveCount, int64(clamp(r.Count)))
	start := len(e.buf)
	e.buf = r.From.append(e.buf)
	e.add(RedriveFrom, start)
}

// appendText appends at most limit bytes of s as valid UTF-8.
func appendText(b []byte, s string, limit int) []byte {
	s = cut(s, limit)
	if utf8.ValidString(s) {
		return append(b, s...)
	}
	end := len(b) + limit
	for _, r := range s { // RuneError for what is no UTF-8
		if len(b)+utf8.RuneLen(r) > end {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// cut shortens s to limit bytes without cutting a character in two.
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

// maxMillis is the end of the year 9999, the last that RFC 3339 can print.
const maxMillis = 253_402_300_799_999

func millis(t time.Time) int64 { return min(max(t.UnixMilli(), 0), maxMillis) }
