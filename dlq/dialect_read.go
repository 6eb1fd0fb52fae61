package dlq

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/internal/reserved"
)

// values are the headers of one key: how many there are, and those of the oldest and the newest
// set. They alias the record's.
type values struct {
	n              int
	oldest, newest []byte
}

// foreign reads the headers of a letter of a dialect.
type foreign struct {
	*Dialect
	record *kgo.Record
	values [dialectFields]values
	err    error // about the first broken header
}

// read returns the headers of a record of this dialect.
func (d *Dialect) read(r *kgo.Record) *foreign {
	f := &foreign{Dialect: d, record: r}
	keys := d.keys()
	for i := range r.Headers {
		h := &r.Headers[i]
		field := slices.Index(keys[:], h.Key)
		if field < 0 || h.Key == "" {
			continue
		}
		v := &f.values[field]
		if v.n++; v.n == 1 {
			v.oldest, v.newest = h.Value, h.Value
		} else if d.Sets == OldestFirst {
			v.newest = h.Value
		} else {
			v.oldest = h.Value
		}
	}
	return f
}

// fill adds what the headers say to what siding's own say: of a copy that siding redrove, these
// have the run.
func (f *foreign) fill(m *headers.Meta) {
	m.Original = f.original()
	m.Group = f.group()
	m.Attempts = f.attempts()
	class, message, stack, frame := f.failure()
	m.Class, m.Message, m.Stack = class, valid(message, headers.MaxMessage), valid(shortTrace(stack), headers.MaxStack)
	m.Fingerprint = classify.Fingerprint(class, m.Message, frame)
	if !f.TimestampKept {
		m.FailedAt = f.record.Timestamp
	}
	m.ValueOmitted = f.OmitsValue && f.record.Key == nil && f.record.Value == nil
}

// fail keeps the error about the first broken header.
func (f *foreign) fail(field int, value []byte, why error) {
	if f.err == nil {
		f.err = &headers.FieldError{Key: f.keys()[field], Value: string(value[:min(len(value), 64)]), Err: why}
	}
}

// original returns where the record was first read: by the oldest set, as far as that is sound. A
// partition or an offset that is not known is -1.
func (f *foreign) original() headers.Position {
	at := headers.Position{Partition: -1, Offset: -1}
	topic := f.values[fieldTopic]
	if topic.n == 0 {
		return headers.Position{}
	}
	if _, err := headers.ParsePosition(string(topic.oldest[:min(len(topic.oldest), 300)]) + "/0/0"); err != nil {
		f.fail(fieldTopic, topic.oldest, headers.ErrSyntax)
		return headers.Position{}
	}
	at.Topic = string(topic.oldest)
	if f.even(fieldPartition, topic.n) && f.even(fieldOffset, topic.n) {
		at.Partition = int32(f.number(fieldPartition, f.values[fieldPartition].oldest, 0, math.MaxInt32, -1))
		at.Offset = f.number(fieldOffset, f.values[fieldOffset].oldest, 0, math.MaxInt64, -1)
	}
	switch {
	case f.TimestampKept:
		at.Timestamp = f.record.Timestamp
	case f.values[fieldTimestamp].n > 0:
		// -1 is a record without one
		if ms := f.number(fieldTimestamp, f.values[fieldTimestamp].oldest, -1, reserved.MaxMillis, -1); ms >= 0 {
			at.Timestamp = time.UnixMilli(ms)
		}
	}
	return at
}

// even reports whether a field is in each set, or in none. Of uneven sets nothing says which values
// belong together.
func (f *foreign) even(field, sets int) bool {
	n := f.values[field].n
	if n != sets && n > 0 {
		f.fail(field, nil, headers.ErrMissing)
	}
	return n == sets || n == 0
}

// number reads a number between bounds; missing if it is not there, or broken.
func (f *foreign) number(field int, value []byte, least, most, missing int64) int64 {
	if f.values[field].n == 0 {
		return missing
	}
	n, err := int64(0), error(nil)
	if f.Numbers == BigEndian {
		if n, err = bigEndian(field, value); err == nil && (n < least || n > most) {
			err = headers.ErrRange
		}
	} else {
		n, err = reserved.Int(value, least, most)
	}
	if err != nil {
		f.fail(field, value, err)
		return missing
	}
	return n
}

// bigEndian reads a number of the length that the field has.
func bigEndian(field int, b []byte) (n int64, err error) {
	switch {
	case field == fieldPartition && len(b) == 4, field == fieldAttempts && len(b) == 4:
		return int64(int32(binary.BigEndian.Uint32(b))), nil
	case field == fieldAttempts && len(b) == 1: // of older versions, without a sign
		return int64(b[0]), nil
	case field == fieldOffset && len(b) == 8, field == fieldTimestamp && len(b) >= 1 && len(b) <= 8:
		n = int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return n, nil
	}
	return 0, headers.ErrSyntax
}

func (f *foreign) group() string {
	v := f.values[fieldGroup]
	switch {
	case v.n == 0 || len(v.newest) == 0:
		return ""
	case len(f.GroupPrefix)+len(v.newest) > maxName || !utf8.Valid(v.newest):
		f.fail(fieldGroup, v.newest, headers.ErrSyntax)
		return ""
	}
	return f.GroupPrefix + string(v.newest)
}

// attempts returns the number of deliveries: the last one counts, since each hop writes it anew.
func (f *foreign) attempts() int {
	n := f.number(fieldAttempts, f.values[fieldAttempts].newest, 0, headers.MaxAttempts, 0)
	if f.NextAttempt && n > 0 {
		n--
	}
	return int(n)
}

// failure returns the last failure: its class and message, the stack, and the function that threw.
// Where the class is a wrapper's, the innermost cause counts.
func (f *foreign) failure() (class, message, stack, frame string) {
	of, said, trace := fieldClass, fieldMessage, fieldStack
	if f.values[of].n == 0 && f.values[fieldKeyClass].n > 0 {
		of, said, trace = fieldKeyClass, fieldKeyMessage, fieldKeyStack
	}
	class, message, stack = f.text(of), f.text(said), f.text(trace)
	cause, why, frame := innermost(f.values[trace].newest)
	if slices.Contains(f.Wrappers, class) {
		inner := f.text(fieldCause)
		if inner == "" || slices.Contains(f.Wrappers, inner) {
			inner = cause
		}
		if inner != "" {
			class = inner
		}
		if inner == cause && why != "" {
			message = why
		}
	}
	return cleanedClass(class), message, stack, frame
}

// text returns the newest value of a field.
func (f *foreign) text(field int) string {
	v := f.values[field].newest
	if len(v) > mostText {
		v = v[:mostText]
	}
	return strings.ToValidUTF8(string(v), "\uFFFD")
}

// mostText bounds what is looked at of a text, in bytes.
const mostText = 64 << 10

// valid returns the beginning of a text, of n bytes at most.
func valid(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.Clone(text[:n])
}
