package look_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/cli"
	"github.com/sidingkafka/siding/redrive/cmd/redrive/internal/root/roottest"
)

// withRegistry runs a command that knows a schema registry from its user's profile.
func withRegistry(t *testing.T, b *roottest.Broker, url string, args ...string) roottest.Result {
	t.Helper()
	i := roottest.Invocation{Env: map[string]string{"SIDING_BROKERS": b.Addr, "SIDING_REGISTRY": url}, Dial: b.Dial}
	return i.Run(t, args...)
}

func orders(t *testing.T) *roottest.Broker {
	t.Helper()
	b := roottest.NewBroker(t, kfake.SeedTopics(1, "orders.dlq", "orders.dlq.ledger")).Open(t)
	b.Produce(t, roottest.Order(0, 'a', 5), roottest.Order(0, 'b', 40))
	return b
}

func TestShow_DecodesByTheRegistry(t *testing.T) {
	t.Parallel()
	b, url := orders(t), roottest.NewRegistry(t).URL()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "value, 9 bytes of avro shop.Order, schema 7:\n  {\"card\":\"a\",\"amount\":5,\"currency\":null}\n"},
		{[]string{"--as", "json"}, "\n    \"amount\": 5,\n"},
		{[]string{"--as", "json", "-o", "json"}, `"value":{"card":"a","amount":5,"currency":null},"encoding":"json","redacted":false,"keySchema":null,"schema":{"kind":"avro","type":"shop.Order","id":7}}`},
		{[]string{"--as", "hex"}, "00 00 00 00 07 02 61 0a  00"},
		{[]string{"--redact", "card"}, `{"card":"[redacted]","amount":5,"currency":null}`},
		{[]string{"--redact", "card", "--as", "hex"}, `{"card":"[redact|`},
	} {
		got := withRegistry(t, b, url, append([]string{"show", "orders.dlq", "0:0"}, c.args...)...)
		roottest.Prints(t, got, cli.ExitDone, c.want, "", c.args)
	}
	// without a registry, bytes
	roottest.Prints(t, b.Redrive(t, "show", "orders.dlq", "0:0"), cli.ExitDone, "value, 9 bytes:\n", "")
}

func TestList_DecodesByTheRegistry(t *testing.T) {
	t.Parallel()
	b, url := orders(t), roottest.NewRegistry(t).URL()
	got := withRegistry(t, b, url, "list", "orders.dlq", "--values", "--where", "value.amount > 10", "-o", "jsonl", "--redact", "card")
	roottest.Prints(t, got, cli.ExitDone, `"value":{"card":"[redacted]","amount":40,"currency":null},"encoding":"json","redacted":true}`, "")
	if n := strings.Count(got.Stdout, "\n"); n != 1 {
		t.Errorf("%d letters fit, want 1: %s", n, got.Stdout)
	}
}

// A registry that is down costs one line, and the letters are listed with their bytes: not where a
// path has to be hidden. It is asked once.
func TestShow_ShowsBytesWithoutTheRegistry(t *testing.T) {
	t.Parallel()
	b := orders(t)
	var asked atomic.Int64
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(down.Close)
	got := withRegistry(t, b, down.URL, "show", "orders.dlq", "0:0")
	roottest.Prints(t, got, cli.ExitDone, "value, 9 bytes:\n  \\x00\\x00\\x00\\x00\\a\\x02a\n", "warning: not decoded: value: schema 7: the registry answers 503 Service Unavailable: no response\n")
	asked.Store(0)
	got = withRegistry(t, b, down.URL, "list", "orders.dlq", "--values", "--redact", "card", "--redact-pattern", "4111")
	roottest.Prints(t, got, cli.ExitDone, "[redacted] 9 bytes that cannot be read by their schema", "warning: 2 letters could not be decoded; the first: 0:0: value: schema 7: the registry answers 503 Service Unavailable: no response\n")
	if asked.Load() > 2 || strings.Contains(got.Stdout, "\\x00") {
		t.Errorf("it was asked %d times: %s", asked.Load(), got.Stdout)
	}
}
