package look_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sidingkafka/siding/headers"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// Whom does it hurt? The first question after what broke took an export and jq.
func TestSummary_CountsByWhomItHurts(t *testing.T) {
	t.Parallel()
	b := roottest.Aftermath(t)
	b.Topic(t, "pay.dlq", 1, nil)
	b.Topic(t, "pay.dlq.ledger", 1, nil)
	for i := range 12 {
		for n := range 1 + i/10*i {
			l := roottest.Letter("pay.dlq", 0, time.Hour, headers.Meta{Class: "tax", Message: "no rate"})
			l.Value = fmt.Appendf(nil, `{"customer":"c%02d","card":"4111-%d"}`, i, n)
			l.Headers = append(l.Headers, kgo.RecordHeader{Key: "tenant", Value: []byte([]string{"acme", "globex"}[i%2])})
			b.Produce(t, l)
		}
	}
	b.Produce(t, roottest.Letter("pay.dlq", 0, time.Hour, headers.Meta{Class: "tax"}))
	got := b.Redrive(t, "summary", "pay.dlq", "--by", "header:tenant", "--by", "10m")
	roottest.Prints(t, got, cli.ExitDone, "\nOPEN  BY header:tenant\n  17  globex\n  16  acme\n   1  (none)\n\nFAILED FROM", "")
	got = b.Redrive(t, "summary", "pay.dlq", "--by", "value.customer")
	roottest.Prints(t, got, cli.ExitDone, "\nOPEN  BY value.customer\n  12  c11\n  11  c10\n   1  c00\n", "")
	roottest.Prints(t, got, cli.ExitDone, "\n   2  (2 other values)\n   1  (none)\n", "")
	got = b.Redrive(t, "summary", "pay.dlq", "--by", "header:tenant", "-o", "json")
	roottest.Prints(t, got, cli.ExitDone, `"by":"header:tenant","values":{"top":[{"value":"globex","count":17,"atLeast":17},{"value":"acme","count":16,"atLeast":16}],"others":0,"without":1,"hidden":0,"values":2,"exact":true}`, "")
	got = b.Redrive(t, "summary", "pay.dlq", "--by", "value.card", "--redact", "card", "-o", "json")
	if !strings.Contains(got.Stdout, `"values":{"top":[],"others":0,"without":1,"hidden":33,"values":0,"exact":true}`) || strings.Contains(got.Stdout, "4111") {
		t.Errorf("what is hidden is counted so: %+v", got)
	}
	for by, want := range map[string]string{
		"10m 5m": "--by: there are two durations", "header:a value.b": "--by: there are two fields", "value.": `--by: "value." at column 6: a . and a name is expected`, "tenant": "and no field, such as header:tenant",
	} {
		args := []string{"summary", "pay.dlq"}
		for _, one := range strings.Fields(by) {
			args = append(args, "--by", one)
		}
		roottest.Prints(t, b.Redrive(t, args...), cli.ExitUsage, "", want, by)
	}
}
