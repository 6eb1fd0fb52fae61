package headers

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/internal/reserved"
)

var (
	sinkHeaders []kgo.RecordHeader
	sinkMeta    Meta
)

// userHeaders are the headers of a producer with tracing.
func userHeaders() []kgo.RecordHeader {
	return []kgo.RecordHeader{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
		{Key: "content-type", Value: []byte("application/json")},
		{Key: "message-type", Value: []byte("order.created")},
		{Key: "tenant", Value: []byte("7")},
	}
}

var t0 = time.UnixMilli(1_763_000_000_123)

// full returns a Meta with every field set that a dead letter can have or, with an empty reason, a
// copy on a retry topic.
func full(r Reason) Meta {
	m := Meta{
		Original: Position{
			Topic:     "orders",
			TopicID:   [16]byte{0: 0xfb, 1: 0xff, 15: 7},
			Partition: 3,
			Offset:    1045,
			Timestamp: t0.Add(-time.Minute),
		},
		Group:         "billing",
		Attempts:      2,
		Class:         "orders.SKUError",
		Message:       "order 7: unknown SKU",
		Fingerprint:   "0123456789abcdef",
		FirstFailedAt: t0,
		FailedAt:      t0.Add(5 * time.Second),
		History: []Attempt{
			{Number: 1, Run: 1, Class: "timeout", At: t0, Verdict: "retry", Message: "50 % of the time, it's late\n"},
			{Number: 1, Run: 2, Class: "timeout", At: t0.Add(time.Second), Verdict: "retry", Message: "\u0085\u00a0"},
			{Number: 2, Class: "orders.SKUError", At: t0.Add(5 * time.Second), Verdict: "terminal", Message: "order 7: unknown SKU"},
		},
		Redrive:     Redrive{ID: "r-7f3a", Count: 2, From: Position{Topic: "orders.dlq", Partition: 3, Offset: 12}, At: t0.Add(-time.Hour)},
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Hops:        3,
		Version:     "1.4.2",
		Environment: "production",
		Host:        "billing-6d5f",
		Reason:      r,
	}
	if r == "" {
		m.NotBefore = t0.Add(35 * time.Second)
		m.Held = true
	} else {
		m.Stack = "main.handle(0x1)\n\t/src/main.go:12 +0x1d\n"
		m.ValueOmitted = true
	}
	return m
}

func mustParse(t *testing.T, h []kgo.RecordHeader) Meta {
	t.Helper()
	m, err := Parse(h)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return m
}

// keysOf returns the keys of h, in order.
func keysOf(h []kgo.RecordHeader) []string {
	keys := make([]string, len(h))
	for i := range h {
		keys[i] = h[i].Key
	}
	return keys
}

func valueOf(h []kgo.RecordHeader, key string) (value string, ok bool) {
	for i := range h {
		if h[i].Key == key {
			return string(h[i].Value), true
		}
	}
	return "", false
}

// clone returns a deep copy without spare capacity.
func clone(h []kgo.RecordHeader) []kgo.RecordHeader {
	c := slices.Clone(h)
	for i := range c {
		c[i].Value = bytes.Clone(c[i].Value)
	}
	return c
}

// The keys that fields of dlq-meta had while each had a header of its own.
var (
	historyKey, hopsKey, heldKey, valueOmittedKey, firstFailedAtKey = reserved.History.String(), reserved.Hops.String(), reserved.Held.String(),
		reserved.ValueOmitted.String(), reserved.FirstFailedAt.String()
	originalTopicIDKey, originalTimestampKey, errorFingerprintKey = reserved.OriginalTopicID.String(), reserved.OriginalTimestamp.String(),
		reserved.ErrorFingerprint.String()
	traceParentKey, consumerVersionKey, environmentKey, hostKey = reserved.TraceParent.String(), reserved.ConsumerVersion.String(),
		reserved.Environment.String(), reserved.Host.String()
	redriveIDKey, redriveCountKey, redriveFromKey, redriveOriginalKey, redriveAtKey, redriveMaxAttemptsKey = reserved.RedriveID.String(),
		reserved.RedriveCount.String(), reserved.RedriveFrom.String(), reserved.RedriveOriginal.String(), reserved.RedriveAt.String(),
		reserved.RedriveMaxAttempts.String()
)

// former returns headers as they were written before there was dlq-meta: each field in a header.
func former(h []kgo.RecordHeader) (out []kgo.RecordHeader) {
	for key, value := range Values(h) {
		if key != MetaFields {
			out = append(out, kgo.RecordHeader{Key: key, Value: value})
		}
	}
	return out
}

// gathered is the inverse of former: dlq-meta takes each header that is a field today.
func gathered(h []kgo.RecordHeader) (out []kgo.RecordHeader) {
	var fields []byte
	for i := range h {
		if k := reserved.Of(h[i].Key); k.FieldName() != "" {
			fields = reserved.AppendField(fields, k, h[i].Value)
		} else {
			out = append(out, h[i])
		}
	}
	return append(out, kgo.RecordHeader{Key: MetaFields, Value: fields})
}

// with returns the headers of a valid retry copy, in the former format, with one value changed, or
// removed if value is nil.
func with(key string, value []byte) []kgo.RecordHeader {
	m := full("")
	var out []kgo.RecordHeader
	found := false
	for _, h := range former(m.Append([]kgo.RecordHeader{{Key: "user", Value: []byte("x")}})) {
		if h.Key == key {
			found = true
			if value == nil {
				continue
			}
			h.Value = value
		}
		out = append(out, h)
	}
	if !found && value != nil {
		out = append(out, kgo.RecordHeader{Key: key, Value: value})
	}
	return out
}
