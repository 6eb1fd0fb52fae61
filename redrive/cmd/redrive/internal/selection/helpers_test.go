package selection

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/headers"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.FixedZone("east", 3600))

func compile(t *testing.T, args ...string) (*Selection, error) {
	t.Helper()
	set := pflag.NewFlagSet("list", pflag.ContinueOnError)
	f := AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f.Compile(now)
}

// letters are what the tests choose from, named by their offsets on partition 0; number 4 is on
// partition 1. Each came into the topic two minutes after it failed.
func letters() []*dlq.Letter {
	letter := func(p int32, o int64, ago time.Duration, key, value string, m headers.Meta, h ...kgo.RecordHeader) *dlq.Letter {
		m.FailedAt = now.Add(-ago)
		r := &kgo.Record{Topic: "orders.dlq", Partition: p, Offset: o, Value: []byte(value), Headers: h}
		r.Timestamp = m.FailedAt.Add(2 * time.Minute)
		if key != "-" {
			r.Key = []byte(key)
		}
		return &dlq.Letter{Record: r, Meta: m}
	}
	h := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	return []*dlq.Letter{
		letter(0, 0, 5*time.Hour, "a", `{"id":9007199254740993,"tier":"gold","items":[{"sku":"x"}]}`, headers.Meta{Class: "http.503", Group: "billing", Attempts: 4, Reason: headers.ReasonExhausted, Fingerprint: "00000000000000aa"}, h("region", "eu"), h("k", "v")),
		letter(0, 1, 3*time.Hour, "b", `{"id":9007199254740992,"tier":null}`, headers.Meta{Class: "http.503", Group: "audit", Attempts: 1, Reason: headers.ReasonTerminal}, h("region", "us")),
		letter(0, 2, 2*time.Hour, "-", `no json`, headers.Meta{Class: "decode", Group: "billing", Attempts: 1, Reason: headers.ReasonDecode}),
		letter(0, 3, time.Hour, "", ``, headers.Meta{Class: "*fs.PathError", Group: "billing", Attempts: 2, Reason: headers.ReasonTerminal}, h("region", "")),
		letter(1, 4, 0, "a", `[1]`, headers.Meta{Class: "decode", Attempts: 0, Original: headers.Position{Topic: "orders", Timestamp: now.Add(-time.Minute)}, Redrive: headers.Redrive{Count: 2}}, h("region", "us"), h("region", "eu")),
	}
}
