package headers

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/internal/reserved"
)

// headersFrom cuts data into headers: a byte for the key, a byte for the length of the value, the
// value.
func headersFrom(data []byte) (h []kgo.RecordHeader) {
	for len(data) >= 2 {
		k, n := int(data[0])%(int(reserved.Count)+2), int(data[1])
		data = data[2:]
		n = min(n, len(data))
		value := data[:n:n]
		data = data[n:]
		switch {
		case k == 0:
			h = append(h, kgo.RecordHeader{Key: "user", Value: value})
		case k < int(reserved.Count):
			h = append(h, kgo.RecordHeader{Key: reserved.Key(k).String(), Value: value})
		case k == int(reserved.Count):
			h = append(h, kgo.RecordHeader{Key: "dlq-" + string(value)})
		default: // long
			h = append(h, kgo.RecordHeader{Key: ErrorMessage, Value: bytes.Repeat(value, 40)})
		}
	}
	return h
}

// bytesOf is the inverse, for the corpus.
func bytesOf(h []kgo.RecordHeader) (data []byte) {
	for i := range h {
		n := min(len(h[i].Value), 255)
		data = append(data, byte(reserved.Of(h[i].Key)), byte(n))
		data = append(data, h[i].Value[:n]...)
	}
	return data
}

// FuzzParse: no headers cause a panic or are changed, and headers that were read without an error
// are written and read back the same.
func FuzzParse(f *testing.F) {
	for _, m := range goldenCases() {
		f.Add(bytesOf(m.Append(userHeaders())))
	}
	f.Add(bytesOf(with(historyKey, []byte("1:a:1,2:b:2"))))
	f.Add(bytesOf(with(historyKey, []byte("2,1.1:a:1:retry:50%25%2C,2:b:2::%zz%c3"))))
	f.Add(bytesOf(with(Attempts, []byte("-1"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		h := headersFrom(data)
		before := clone(h)

		m, err := Parse(h)
		var fe *FieldError
		if err != nil && (!errors.As(err, &fe) || !Reserved(fe.Key) || fe.Error() == "") {
			t.Errorf("error %v, want a *FieldError about a reserved key", err)
		}
		if !utf8.ValidString(m.Message) || len(m.Message) > MaxMessage || len(m.Stack) > MaxStack {
			t.Errorf("message %q, stack of %d bytes", m.Message, len(m.Stack))
		}
		if m.Attempts < 0 || m.Attempts > MaxAttempts || m.Original.Partition < 0 || m.Original.Offset < 0 {
			t.Errorf("out of bounds: %+v", m)
		}
		checkErr := m.CheckRetry(t0, time.Hour)
		if checkErr == nil && m.NotBefore.After(t0.Add(time.Hour)) {
			t.Errorf("due at %v", m.NotBefore)
		}
		Strip(h)
		back, _ := ParseSource(h, "orders.dlq")
		if again, _ := ParseSource(back.AppendSource(h), "orders.dlq"); !reflect.DeepEqual(back, again) {
			t.Errorf("written to a source again (-first +again):\n%s", cmp.Diff(back, again))
		}
		letter := Malformed(h, err, t0)
		if got, _ := Parse(letter); got.Reason != ReasonMalformed || !got.FailedAt.Equal(t0) {
			t.Errorf("Malformed has reason %q at %v", got.Reason, got.FailedAt)
		}
		out := m.Append(h)
		if !slices.EqualFunc(before, h, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) }) {
			t.Fatalf("input changed (-before +after):\n%s", cmp.Diff(before, h))
		}

		if err != nil {
			return
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("what Append wrote does not parse: %v", err)
		}
		// Reason decides which of these are written.
		if m.Reason == "" {
			m.Stack, m.ValueOmitted = "", false
		} else {
			m.NotBefore, m.Held = time.Time{}, false
		}
		if m.Original.Topic == "" { // parts of a position are not written alone
			m.Original = Position{}
		}
		if !reflect.DeepEqual(m, again) {
			t.Errorf("read again (-first +again):\n%s", cmp.Diff(m, again))
		}
	})
}

// FuzzMeta_RoundTrips: the headers of any Meta are read back without an error and as the same Meta,
// cut to the limits.
func FuzzMeta_RoundTrips(f *testing.F) {
	f.Add("orders", "billing", "timeout", "message", "stack\n", int64(7), int64(1_763_000_000_123), 3, uint8(0))
	f.Add("o", "g", "tax table", strings.Repeat("é", 600), "\xff", int64(-1), int64(-1), -1, uint8(255))
	f.Fuzz(func(t *testing.T, topic, group, class, message, stack string, offset, ms int64, n int, bits uint8) {
		if checkTopic(topic) != nil || group == "" || len(group) > reserved.MaxGroup || !utf8.ValidString(group) {
			return
		}
		at := time.UnixMilli(ms)
		if at.IsZero() {
			return
		}
		m := Meta{
			Original: Position{Topic: topic, Partition: int32(n & 0xffff), Offset: offset & (1<<63 - 1), Timestamp: at},
			Group:    group, Attempts: n, Class: class, Message: message, Stack: stack, Fingerprint: class,
			FirstFailedAt: at, FailedAt: at, NotBefore: at, Hops: n,
			TraceParent: message, Version: stack, Environment: class, Host: message,
			Held: bits&1 != 0, ValueOmitted: bits&2 != 0,
		}
		if bits&4 != 0 {
			m.Reason = ReasonExhausted
		}
		if bits&8 != 0 && utf8.ValidString(class) && class != "" {
			m.Redrive = Redrive{ID: cut(class, 200), Count: n, From: Position{Topic: topic, Partition: 1, Offset: 2}, At: at, MaxAttempts: n}
		}
		for i := range int(bits >> 4) {
			m.History = append(m.History, Attempt{Number: n + i, Run: i, Class: class, At: at, Verdict: topic, Message: message})
		}

		got, err := Parse(m.Append(nil))
		if err != nil {
			t.Fatalf("Parse: %v", err)
		}
		if got.Original != m.Original || got.Group != group || got.Redrive.ID != m.Redrive.ID {
			t.Errorf("identity: got %+v, want %+v", got, m)
		}
		if got.Attempts != clamp(n) || got.Class != classify.CleanClass(class) || got.Reason != m.Reason {
			t.Errorf("attempts %d, class %q, reason %q of %+v", got.Attempts, got.Class, got.Reason, m)
		}
		if utf8.ValidString(message) && len(message) <= MaxMessage && got.Message != message {
			t.Errorf("message %q, want %q", got.Message, message)
		}
		// A value is cut only once.
		again, err := Parse(got.Append(nil))
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("a second hop changes it: %v (-first +second):\n%s", err, cmp.Diff(got, again))
		}
		if size := got.Size(); !got.Shrink(size) || got.Shrink(size/2) && got.Size() > size/2 {
			t.Errorf("Shrink: %d bytes of %d", got.Size(), size)
		}
	})
}
