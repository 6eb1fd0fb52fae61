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
	e := encoder{buf: make([]byte, 0, m.estimate())}
	if o := &m.Original; o.Topic != "" {
		e.raw(originalTopic, o.Topic)
		e.topicID(o.TopicID)
		e.number(originalPartition, int64(o.Partition))
		e.number(originalOffset, o.Offset)
		if !o.Timestamp.IsZero() {
			e.number(originalTimestamp, o.Timestamp.UnixMilli())
		}
	}
	e.raw(group, m.Group)
	e.number(attempts, int64(clamp(m.Attempts)))
	e.class(errorClass, m.Class)
	if validFingerprint(m.Fingerprint) {
		e.raw(errorFingerprint, m.Fingerprint)
	}
	e.text(errorMessage, m.Message, MaxMessage)
	if m.Reason != "" {
		e.text(errorStack, m.Stack, MaxStack)
		e.class(failureReason, string(m.Reason))
	}
	e.time(firstFailedAt, m.FirstFailedAt)
	e.time(failedAt, m.FailedAt)
	if m.Reason == "" {
		e.time(notBefore, m.NotBefore)
		e.flag(held, m.Held)
	}
	if m.Hops > 0 {
		e.number(hops, int64(clamp(m.Hops)))
	}
	e.history(m.writtenHistory())
	e.text(traceParent, m.TraceParent, maxNote)
	e.text(consumerVersion, m.Version, maxNote)
	e.text(environment, m.Environment, maxNote)
	e.text(host, m.Host, maxNote)
	e.redrive(&m.Redrive)
	if m.Reason != "" {
		e.flag(valueOmitted, m.ValueOmitted)
	}
	return e.headers(h)
}

// Append returns a new slice with the headers of h, without the reserved ones
// among them, and then those of r: what redrive writes to a source topic, where
// nothing else of a dead letter's story belongs. h itself is not changed.
func (r *Redrive) Append(h []kgo.RecordHeader) []kgo.RecordHeader {
	e := encoder{buf: make([]byte, 0, r.estimate())}
	e.redrive(r)
	return e.headers(h)
}

// estimate is about as many bytes as the values take: enough for one allocation
// to do, hardly ever more than the allocator would round up to.
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
		n += len(m.History[i].Class) + 20
	}
	return n
}

func (r *Redrive) estimate() int {
	if r.ID == "" {
		return 0
	}
	return min(len(r.ID), maxRedriveID) + len(r.From.Topic) + 24
}

// encoder collects values in one array. Which headers there are is known at the
// end, so that the slice for them is no longer than it has to be.
type encoder struct {
	buf  []byte
	n    int
	keys [numKeys]key
	ends [numKeys]int // of the values in buf
}

// add makes what was appended to buf since the last header one with key k.
func (e *encoder) add(k key) {
	e.keys[e.n], e.ends[e.n] = k, len(e.buf)
	e.n++
}

// headers returns the user's headers among h and those that were added.
func (e *encoder) headers(h []kgo.RecordHeader) []kgo.RecordHeader {
	out := appendUser(make([]kgo.RecordHeader, 0, len(h)-countReserved(h)+e.n), h)
	start := 0
	for i := range e.n {
		// The capacity ends where the next value starts, so that
		// appending to one can't reach another.
		end := e.ends[i]
		out = append(out, kgo.RecordHeader{Key: keyNames[e.keys[i]], Value: e.buf[start:end:end]})
		start = end
	}
	return out
}

func (e *encoder) raw(k key, s string) {
	if s != "" {
		e.buf = append(e.buf, s...)
		e.add(k)
	}
}

func (e *encoder) text(k key, s string, limit int) {
	if s != "" {
		e.buf = appendText(e.buf, s, limit)
		e.add(k)
	}
}

func (e *encoder) class(k key, s string) { e.raw(k, classify.CleanClass(s)) }

func (e *encoder) number(k key, n int64) {
	e.buf = strconv.AppendInt(e.buf, n, 10)
	e.add(k)
}

func (e *encoder) time(k key, t time.Time) {
	if !t.IsZero() {
		e.number(k, millis(t))
	}
}

func (e *encoder) flag(k key, set bool) {
	if set {
		e.raw(k, "true")
	}
}

func (e *encoder) topicID(id [16]byte) {
	if id != ([16]byte{}) {
		e.buf = base64.RawURLEncoding.AppendEncode(e.buf, id[:])
		e.add(originalTopicID)
	}
}

func (e *encoder) redrive(r *Redrive) {
	if r.ID != "" {
		e.text(redriveID, r.ID, maxRedriveID)
		e.number(redriveCount, int64(clamp(r.Count)))
		e.buf = r.From.append(e.buf)
		e.add(redriveFrom)
	}
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
