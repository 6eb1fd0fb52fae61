package move_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/dlq"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// What an export says of a value by its schema stands beside the bytes, which import takes. Where
// something is hidden, the line has no bytes but those that may be shown.
func TestExport_DecodesByTheRegistry(t *testing.T) {
	t.Parallel()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger")).Open(t)
	b.Produce(t, roottest.Order(0, 'a', 5))
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_REGISTRY": roottest.NewRegistry(t).URL()}, Dial: b.Dial}
	const plain = `{"card":"a","amount":5,"currency":null}`
	const hidden = `{"card":"[redacted]","amount":5,"currency":null}`
	for _, c := range []struct{ flags, value, decoded string }{
		{"", string(roottest.OrderValue('a', 5)), ""},
		{"--decoded", string(roottest.OrderValue('a', 5)), plain},
		{"--decoded --redact card --redact-pattern 4111", hidden, hidden},
		{"--redact card --redact-pattern 4111", hidden, ""},
	} {
		got := i.Run(t, append([]string{"export", "orders.dlq"}, strings.Fields(c.flags)...)...)
		if has := strings.Contains(got.Stdout, `"decoded":{`); got.Code != cli.ExitDone || has != (c.decoded != "") || !strings.Contains(got.Stdout, c.decoded) {
			t.Errorf("%s: %+v", c.flags, got)
		}
		for l, err := range dlq.ReadExport(strings.NewReader(got.Stdout)) {
			if err != nil || string(l.Record.Value) != c.value {
				t.Errorf("%s: %v, %+v", c.flags, err, l)
			}
		}
	}
}
