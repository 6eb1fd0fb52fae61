package headers_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/classify"
	"github.com/sidingkafka/siding/headers"
)

func show(h []kgo.RecordHeader) {
	for _, h := range h {
		fmt.Printf("%s: %s\n", h.Key, h.Value)
	}
}

// A record that failed once, as it is written to the first tier.
func ExampleMeta_Append() {
	at := time.UnixMilli(1_763_000_000_000)
	user := []kgo.RecordHeader{{Key: "tenant", Value: []byte("7")}}

	m := headers.Meta{Original: headers.Position{Topic: "orders", Partition: 3, Offset: 1045}, Group: "billing"}
	m.Fail(classify.Result{Verdict: classify.VerdictRetry, Class: "payment.busy", Fingerprint: "91b7a5c60d1f2e38"}, "provider is busy", at)
	m.NotBefore = at.Add(5 * time.Second)
	m.Hops++
	show(m.Append(user))
	// Output:
	// tenant: 7
	// dlq-original-topic: orders
	// dlq-original-partition: 3
	// dlq-original-offset: 1045
	// dlq-group: billing
	// dlq-attempts: 1
	// dlq-error-class: payment.busy
	// dlq-error-msg: provider is busy
	// dlq-failed-at: 1763000000000
	// dlq-not-before: 1763000005000
	// dlq-meta: fp=91b7a5c60d1f2e38;history=2,1:payment.busy:1763000000000:retry:provider is busy;
}

// If many records fail alike, an Encoder encodes equal values once.
func ExampleEncoder_Append() {
	var encoder headers.Encoder
	m := headers.Meta{Original: headers.Position{Topic: "orders", Partition: 3}, Group: "billing"}
	for offset := range int64(2) {
		m.Original.Offset = 1045 + offset
		h := encoder.Append(&m, nil)
		fmt.Printf("%s %s, %s %s\n", h[0].Key, h[0].Value, h[2].Key, h[2].Value)
	}
	// Output:
	// dlq-original-topic orders, dlq-original-offset 1045
	// dlq-original-topic orders, dlq-original-offset 1046
}

// The errors distinguish the faults of a header.
func ExampleFieldError() {
	_, err := headers.Parse([]kgo.RecordHeader{{Key: headers.NotBefore, Value: []byte("tomorrow")}})
	fmt.Println(errors.Is(err, headers.ErrSyntax), errors.Is(err, headers.ErrRange))
	fmt.Println(err)
	// Output:
	// true false
	// header dlq-not-before: "tomorrow" is not in the format of this header
}

func ExampleMeta_Fail() {
	m := headers.Meta{Attempts: 1}
	m.Fail(classify.Result{Class: "timeout"}, "context deadline exceeded", time.UnixMilli(1_763_000_000_000))
	fmt.Println(m.Attempts, m.Class, m.History[0].Number)
	// Output: 2 timeout 2
}

// A record of a retry topic is accepted only if its headers are valid and plausible there.
func ExampleParse() {
	h := []kgo.RecordHeader{{Key: headers.Attempts, Value: []byte("-1")}}
	_, err := headers.Parse(h)
	if fe, ok := errors.AsType[*headers.FieldError](err); ok {
		fmt.Println(fe.Key)
	}
	fmt.Println(err)
	// Output:
	// dlq-attempts
	// header dlq-attempts: "-1" is out of bounds
}

func ExampleMeta_CheckRetry() {
	written := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	m := headers.Meta{
		Original:  headers.Position{Topic: "orders"},
		Group:     "billing",
		NotBefore: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	fmt.Println(m.CheckRetry(written, 7*24*time.Hour))
	// Output: header dlq-not-before: "253402214400000" is out of bounds: due after 2026-11-27T08:00:00Z, when the topic may forget the record
}

func ExampleMalformed() {
	h := []kgo.RecordHeader{
		{Key: "tenant", Value: []byte("7")},
		{Key: headers.Attempts, Value: []byte("many")},
	}
	_, err := headers.Parse(h)
	show(headers.Malformed(h, err, time.UnixMilli(1_763_000_000_000)))
	// Output:
	// tenant: 7
	// dlq-attempts: many
	// dlq-error-class: malformed
	// dlq-error-msg: header dlq-attempts: "many" is not in the format of this header
	// dlq-reason: malformed
	// dlq-failed-at: 1763000000000
}

func ExampleMeta_Shrink() {
	m := headers.Meta{Group: "billing", Message: "a long story", History: []headers.Attempt{
		{Number: 1, Class: "timeout", At: time.UnixMilli(1_763_000_000_000)},
		{Number: 2, Class: "timeout", At: time.UnixMilli(1_763_000_005_000)},
	}}
	fits := m.Shrink(m.Size() - 1)
	fmt.Println(fits, len(m.History), m.History[0].Number, m.Message)
	// Output: true 1 2 a long story
}

func ExampleMeta_Size() {
	fmt.Println(new(headers.Meta).Size(), "bytes: dlq-attempts is always there")

	at := time.UnixMilli(1_763_000_000_000)
	m := headers.Meta{
		Original:    headers.Position{Topic: "orders", TopicID: [16]byte{1}, Partition: 3, Offset: 1045, Timestamp: at.Add(-time.Minute)},
		Group:       "billing",
		Attempts:    1,
		Hops:        1,
		Class:       "payment.busy",
		Message:     "charge order 7: payment provider is busy",
		Fingerprint: "91b7a5c60d1f2e38", FirstFailedAt: at, FailedAt: at, NotBefore: at.Add(5 * time.Second),
	}
	fmt.Println(m.Size(), "bytes: a first failure")
	m.Host = "billing-6d5f"
	fmt.Println(m.Size(), "bytes: with a host")
	m.Message = ""
	fmt.Println(m.Size(), "bytes: and without a message")
	// Output:
	// 15 bytes: dlq-attempts is always there
	// 323 bytes: a first failure
	// 342 bytes: with a host
	// 287 bytes: and without a message
}

func ExampleStrip() {
	show(headers.Strip([]kgo.RecordHeader{
		{Key: "tenant", Value: []byte("7")},
		{Key: headers.Attempts, Value: []byte("2")},
		{Key: "dlq-owner", Value: []byte("the user's own")},
	}))
	// Output:
	// tenant: 7
	// dlq-owner: the user's own
}

// A consumer that looks for a value by its key finds it in each format.
func ExampleValues() {
	m := headers.Meta{Group: "billing", Host: "billing-6d5f"}
	for key, value := range headers.Values(m.Append(nil)) {
		fmt.Printf("%s: %s\n", key, value)
	}
	// Output:
	// dlq-group: billing
	// dlq-attempts: 0
	// dlq-meta: host=billing-6d5f;
	// dlq-host: billing-6d5f
}

// Redrive's headers on a source topic count only if they name the source's own DLQ.
func ExampleParseSource() {
	m := headers.Meta{Redrive: headers.Redrive{ID: "7f3a", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 12}}}
	h := m.AppendSource([]kgo.RecordHeader{{Key: "tenant", Value: []byte("7")}})

	got, ok := headers.ParseSource(h, "orders.dlq")
	fmt.Println(got.Redrive.ID, got.Redrive.From, ok)
	_, ok = headers.ParseSource(h, "payments.dlq")
	fmt.Println(ok)
	// Output:
	// 7f3a orders.dlq/3/12 true
	// false
}

func ExampleMeta_AppendSource() {
	at := time.UnixMilli(1_763_000_000_000)
	m := headers.Meta{
		FirstFailedAt: at,
		Redrive: headers.Redrive{
			ID: "7f3a", Count: 1, From: headers.Position{Topic: "orders.dlq", Partition: 3, Offset: 12},
			At: at.Add(time.Hour), MaxAttempts: 2,
		},
	}
	show(m.AppendSource(nil))
	// Output:
	// dlq-meta: first=1763000000000;run=7f3a;runs=1;from=orders.dlq/3/12;max=2;sent=1763003600000;
}

func ExampleParsePosition() {
	p, err := headers.ParsePosition("orders.dlq/3/12")
	fmt.Println(p.Topic, p.Partition, p.Offset, err)
	// Output: orders.dlq 3 12 <nil>
}

func ExamplePosition_String() {
	fmt.Println(headers.Position{Topic: "orders", Partition: 3, Offset: 1045})
	// Output: orders/3/1045
}

func ExampleReserved() {
	fmt.Println(headers.Reserved("dlq-attempts"), headers.Reserved("dlq-owner"))
	// Output: true false
}
