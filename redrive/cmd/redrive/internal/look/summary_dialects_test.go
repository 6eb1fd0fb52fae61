package look_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli/clitest"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// springLetter is a dead letter of a Spring service.
func springLetter(offset byte) *kgo.Record {
	r := &kgo.Record{Topic: "orders.dlq", Partition: 1, Timestamp: clitest.Noon, Key: []byte("k"), Value: []byte("v")}
	for _, h := range [][2]string{
		{"kafka_dlt-original-topic", "orders"},
		{"kafka_dlt-original-partition", "\x00\x00\x00\x01"},
		{"kafka_dlt-original-offset", "\x00\x00\x00\x00\x00\x00\x00" + string([]byte{offset})},
		{"kafka_dlt-original-consumer-group", "billing"},
		{"kafka_dlt-exception-fqcn", "com.example.TaxException"},
		{"kafka_dlt-exception-message", "no rate for 4111111111111111"},
	} {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return r
}

// The letters of a Spring service, of Connect and of siding stood in one list as class "-".
func TestSummary_ReadsLettersOfOtherPrograms(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Produce(t, springLetter(1), springLetter(2), &kgo.Record{
		Topic: "orders.dlq", Partition: 1, Timestamp: clitest.Noon, Headers: []kgo.RecordHeader{{Key: "reason_poisoned", Value: []byte("no rate")}, {Key: "topic_poisoned", Value: []byte("orders")}},
	})
	hidden := []string{"--redact-pattern", `\d{13,19}`}
	got := b.Redrive(t, append([]string{"summary", "orders.dlq"}, hidden...)...)
	if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, "\nFOREIGN      4: 2 spring, 1 watermill\n") || !strings.Contains(got.Stdout, "com.example.TaxException") || strings.Contains(got.Stdout, "4111") {
		t.Errorf("%+v", got)
	}
	roottest.Prints(t, b.Redrive(t, "summary", "orders.dlq", "-o", "json"), cli.ExitDone, `"dialects":{"spring":2,"watermill":1}}`, "")
	got = b.Redrive(t, "list", "orders.dlq", "--class", "com.example.*", "--group", "billing", "-o", "jsonl")
	if strings.Count(got.Stdout, `"reason":null,"dialect":"spring","group":"billing","attempts":0,"failedAt":"2026-11-20T12:00:00.000Z"`) != 2 {
		t.Errorf("%+v", got)
	}
	got = b.Redrive(t, append([]string{"show", "orders.dlq", "1:3"}, hidden...)...)
	if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, "DIALECT      spring\n") || !strings.Contains(got.Stdout, "ORIGINAL     orders/1/1\n") || strings.Contains(got.Stdout, "4111") || strings.Contains(got.Stdout, "UNREADABLE") {
		t.Errorf("%+v", got)
	}
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "1:5", "--around", "2"), cli.ExitDone, "ORIGINAL     orders\nDIALECT      watermill\n", "the letter does not say at which offset of orders it was first read")
	// A run treats them as before: they name no group of siding's.
	roottest.Prints(t, b.Redrive(t, "plan", "orders.dlq", "--class", "com.example.*"), cli.ExitRefused, "", "2 letters fit, and none names its group: name a target topic")
	got = b.Redrive(t, "plan", "orders.dlq", "--class", "com.example.*", "--target", "orders", "-o", "json")
	if got.Code != cli.ExitDone || !strings.Contains(got.Stdout, `"letters":2,`) || !strings.Contains(got.Stdout, `"groups":[{"letters":2,"group":""}]`) || strings.Contains(got.Stderr, "--class") {
		t.Errorf("%+v", got)
	}
}
