package headers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
)

var t0 = time.UnixMilli(1_763_000_000_123)

// full returns a Meta with every field set that a dead letter or, with an empty
// reason, a copy on a retry topic can have.
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
			{Number: 1, Class: "timeout", At: t0},
			{Number: 2, Class: "orders.SKUError", At: t0.Add(5 * time.Second)},
		},
		Redrive:     Redrive{ID: "r-7f3a", Count: 2, From: Position{Topic: "orders.dlq", Partition: 3, Offset: 12}},
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Hops:        2,
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

func TestParseReadsWhatAppendWrites(t *testing.T) {
	t.Parallel()
	for _, want := range []Meta{
		full(""),
		full(ReasonPanic),
		{Original: Position{Topic: "t"}, Group: "g", NotBefore: t0},
		{Group: "ingest", Reason: ReasonTerminal},
		{},
	} {
		got, err := Parse(want.Append(nil))
		if err != nil {
			t.Errorf("Parse: %v", err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("round trip (-want +got):\n%s", d)
		}
	}
}

var _ = strings.Repeat
var _ kgo.RecordHeader
var _ classify.Result
