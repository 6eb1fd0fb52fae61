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
// Reason decides what is written. Without a reason the result is for a retry topic and has the due
// time and Held. With a reason it is for a dead letter and has the reason, the stack and
// ValueOmitted.
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
	if m.Redrive.At.IsZero() {
		redriven.FirstFailedAt, redriven.History = time.Time{}, nil
	}
	if m.Redrive.ID != "" {
		e.fields(&redriven, nil)
	}
	return e.headers(make([]kgo.RecordHeader, 0, len(h)-countReserved(h)+e.n), h)
}

// estimate returns the approximate size of all values: enough for one allocation in most cases, and
// hardly more than the allocator would round up to.
func (m *Meta) estimate() int {
	const numbers = 2*10 + 3 + 2*13 // partition, offset; attempts; times
	n := numbers + len(m.Original.Topic) + len(m.Group) + min(len(m.Class), classify.MaxClass) +
		min(len(m.Message), MaxMessage) + m.most()
	if m.Reason != "" {
		n += min(len(m.Stack), MaxStack) + len(m.Reason)
	}
	return n
}

// most is an upper bound of the size of dlq-meta, but for a text that has to be escaped.
func (m *Meta) most() int {
	const fixed = 3 + 22 + 4 + 20 + 4 + 16 + 6 + 7 + 7 + 13 + // id, ts, fp, hops, first
		11 + 12 // held, omitted
	n := fixed + len(m.Unknown)
	for _, s := range [...]string{m.TraceParent, m.Version, m.Environment, m.Host} {
		if s != "" {
			n += 9 + min(len(s), maxNote)
		}
	}
	if len(m.History) > 0 {
		n += mostHistory(m.History)
	}
	if r := &m.Redrive; r.ID != "" {
		// run, runs, from, origin, max, sent
		const fixed = 5 + 6 + 7 + 6 + 30 + 8 + 30 + 6 + 7 + 6 + 13
		n += fixed + min(len(r.ID), maxRedriveID) + len(r.From.Topic) + len(r.Original.Topic)
	}
	return n
}

// encoder collects values. The number of headers is known at the end, so that their slice is no
// longer than necessary.
type encoder struct {
	buf  []byte // values are cut from it
	n    int
	keys [reserved.Count]reserved.Key
	each [reserved.Count]kgo.RecordHeader
	memo *memo // nil: encode everything
}

// meta adds the headers of m.
func (e *encoder) meta(m *Meta) {
	if o := &m.Original; o.Topic != "" {
		e.raw(reserved.OriginalTopic, o.Topic)
		e.number(reserved.OriginalPartition, int64(o.Partition))
		e.number(reserved.OriginalOffset, o.Offset)
	}
	e.raw(reserved.Group, m.Group)
	e.number(reserved.Attempts, int64(clamp(m.Attempts)))
	e.class(reserved.ErrorClass, m.Class)
	e.text(reserved.ErrorMessage, m.Message, MaxMessage)
	if m.Reason != "" {
		e.text(reserved.ErrorStack, m.Stack, MaxStack)
		e.class(reserved.FailureReason, string(m.Reason))
	}
	e.time(reserved.FailedAt, m.FailedAt)
	if m.Reason == "" {
		e.time(reserved.NotBefore, m.NotBefore)
	}
	e.fields(m, nil)
}

// fields adds dlq-meta: first the timestamp, which differs from record to record. A redrive's come
// last, since its run sets the time in what is written. failure are those of the failure, nil if
// they are not encoded yet.
func (e *encoder) fields(m *Meta, failure []byte) {
	start := e.room(m.most())
	if stamped(&m.Original) {
		e.field(reserved.OriginalTimestamp, m.Original.Timestamp.UnixMilli())
	}
	from := len(e.buf)
	if e.buf = append(e.buf, failure...); failure == nil {
		e.failure(m, stamped(&m.Original))
		if e.memo != nil {
			e.memo.failed.keep(m, e.buf[from:])
		}
	}
	e.buf = append(e.buf, m.Unknown...)
	e.redrive(&m.Redrive)
	if len(e.buf) > start {
		e.add(reserved.Meta, start)
	}
}

// failure adds the fields that records which fail alike have in common. Two values are left out if
// they are the usual ones, and another field says that there is dlq-meta: the first failure that is
// the last one too, and as many copies as deliveries.
func (e *encoder) failure(m *Meta, others bool) {
	if o := &m.Original; o.Topic != "" && o.TopicID != ([16]byte{}) {
		e.buf = reserved.BeginField(e.buf, reserved.OriginalTopicID)
		e.buf = append(base64.RawURLEncoding.AppendEncode(e.buf, o.TopicID[:]), ';')
		others = true
	}
	if validFingerprint(m.Fingerprint) {
		e.note(reserved.ErrorFingerprint, m.Fingerprint)
		others = true
	}
	if hops, attempts := clamp(m.Hops), clamp(m.Attempts); hops != attempts || hops > 0 && !others {
		e.field(reserved.Hops, int64(hops))
		others = true
	}
	e.firstFailure(m, others)
	e.note(reserved.TraceParent, m.TraceParent)
	e.note(reserved.ConsumerVersion, m.Version)
	e.note(reserved.Environment, m.Environment)
	e.note(reserved.Host, m.Host)
	if m.Held && m.Reason == "" {
		e.note(reserved.Held, "true")
	}
	if m.ValueOmitted && m.Reason != "" {
		e.note(reserved.ValueOmitted, "true")
	}
	e.history(m.writtenHistory())
}

func (e *encoder) firstFailure(m *Meta, follows bool) {
	switch first, last := m.FirstFailedAt, m.FailedAt; {
	case !first.IsZero() && !last.IsZero() && follows && millis(first) == millis(last) && m.Reason != ReasonMalformed:
	case !first.IsZero():
		e.field(reserved.FirstFailedAt, millis(first))
	case !last.IsZero():
		e.note(reserved.FirstFailedAt, noTime)
	}
}

// add turns the bytes appended to buf since start into a header with key k. Its capacity ends where
// the next value starts, so that appending to one value cannot reach another.
func (e *encoder) add(k reserved.Key, start int) {
	end := len(e.buf)
	e.put(k, e.buf[start:end:end])
}

func (e *encoder) put(k reserved.Key, value []byte) {
	e.keys[e.n], e.each[e.n] = k, kgo.RecordHeader{Key: k.String(), Value: value}
	e.n++
}

// headers appends the user's headers among h and those that were added to out.
func (e *encoder) headers(out, h []kgo.RecordHeader) []kgo.RecordHeader {
	return append(appendUser(out, h), e.each[:e.n]...)
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
	known := len(s) <= limit // the memo keeps no long text
	if s == "" || known && e.memo.string(e, k, s) {
		return
	}
	start := e.room(min(len(s), limit) + utf8.UTFMax)
	e.buf = appendText(e.buf, s, limit)
	e.add(k, start)
	if known {
		e.memo.keepString(e, k, s)
	}
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

// field adds a number to dlq-meta.
func (e *encoder) field(k reserved.Key, n int64) {
	e.buf = append(strconv.AppendInt(reserved.BeginField(e.buf, k), n, 10), ';')
}

// note adds a text to dlq-meta.
func (e *encoder) note(k reserved.Key, s string) {
	if s != "" {
		e.buf = reserved.AppendField(e.buf, k, valid(s, maxNote))
	}
}

func (e *encoder) position(k reserved.Key, p *Position) {
	e.buf = append(p.append(reserved.BeginField(e.buf, k)), ';')
}

// redrive adds the fields of a redrive, and its time last.
func (e *encoder) redrive(r *Redrive) {
	if r.ID == "" {
		return
	}
	e.note(reserved.RedriveID, r.ID)
	e.field(reserved.RedriveCount, int64(clamp(r.Count)))
	e.position(reserved.RedriveFrom, &r.From)
	if r.Original.Topic != "" {
		e.position(reserved.RedriveOriginal, &r.Original)
	}
	if r.MaxAttempts > 0 {
		e.field(reserved.RedriveMaxAttempts, int64(clamp(r.MaxAttempts)))
	}
	if !r.At.IsZero() {
		e.field(reserved.RedriveAt, millis(r.At))
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
